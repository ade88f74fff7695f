// Finds the first layer with a value that is not finite.
#include "llm/model/finite.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "llm/model/model_state.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/reduce.h"
#include "runtime/fallback.h"

namespace prism::llm {

namespace {

// A part of the model and the largest magnitude in its result; NaN if the result contains one.
struct Part {
  std::string name;
  Tensor largest;
};

Part part_of(std::string name, const Tensor& x) { return {std::move(name), max(abs(x))}; }

std::vector<Part> parts_of(const Model::State& model, Blocks& blocks) {
  const Architecture& architecture = *model.architecture;
  Tensor x = architecture.embed(blocks);
  std::vector<Part> parts = {part_of("the token embedding", x)};
  for (int64_t layer = 0; layer < model.config.layers; ++layer) {
    const auto i = static_cast<size_t>(layer);
    blocks.enter_layer(layer);
    x = architecture.layer(blocks, model.weights.layers[i],
                           x.to(model.options.placement.layers[i]));
    parts.push_back(part_of(fmt::format("layer {} ({}) of {}", layer,
                                        model.config.layer_name(layer), model.config.layers),
                            x));
  }
  x = architecture.hidden(blocks, x.to(model.options.placement.output));
  parts.push_back(part_of("the final norm", x));
  return parts;
}

// Runs a batch of one sequence and returns the first part whose result is not finite.
std::optional<std::string> first_bad_part(Model::State& model, const SequencePart& batch) {
  const auto rows = static_cast<int64_t>(batch.tokens.size());
  model.reserve(std::span(&batch, 1));
  // Exact: padding could hide or add a value.
  BatchPlan made(BatchShape{rows, 1, 1, false}, model.cache);
  made.batches = model.make_batches(made.layout.words());
  made.write(made.layout.pack(std::span(&batch, 1), model.cache));
  Blocks blocks(model.config, model.weights, model.cache, model.ropes, made.layout, made.batches);
  const std::vector<Part> parts = parts_of(model, blocks);
  std::vector<Tensor> outputs;
  for (const Part& each : parts) outputs.push_back(each.largest);
  PlanOptions options;
  options.arenas = model.arenas;
  Plan plan(outputs, std::span<const Tensor>(), options);
  plan.run();
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor& x = outputs[i];
    const Spec& spec = x.node()->outputs[static_cast<size_t>(x.output())];
    if (!all_finite(tensor_over(plan.output(i), spec).to_vector<float>())) return parts[i].name;
  }
  return std::nullopt;
}

}  // namespace

Error not_finite_error(Model& model, int32_t slot, std::span<const int32_t> tokens) {
  Model::State& state = model.state();
  state.check_devices();
  const FallbackHeld held;
  std::string part = "the output matrix";
  int32_t first = 0;
  // The tokens do not say which of them are the encoder's.
  if (state.config.has_decoder()) part = "a layer", tokens = {};
  while (!tokens.empty()) {
    const auto count = std::min(tokens.size(), static_cast<size_t>(model.batch_rows()));
    const SequencePart batch{slot, first, tokens.first(count), Wanted::last};
    state.check(std::span(&batch, 1));
    if (const auto bad = first_bad_part(state, batch)) {
      part = *bad;
      break;
    }
    tokens = tokens.subspan(count);
    first += static_cast<int32_t>(count);
  }
  return Error(
      ErrorCode::kCorruptFile,
      fmt::format("model: {} gives values that are not finite (NaN or infinity), so there is "
                  "no result; look for the cause in the file with: prism model verify",
                  part));
}

}  // namespace prism::llm
