// Finds the products with weights in the graph of a model, and plans the sums of their inputs.
#include "llm/model/importance_sums.h"

#include <algorithm>
#include <set>
#include <string>

#include <fmt/format.h>

#include "llm/model/finite.h"
#include "llm/model/model_state.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"

namespace prism::llm {

namespace {

// The sums of one matrix in one chunk, as tensors of the graph.
struct Sums {
  std::string name;
  Tensor squares;  // [columns] or [matrices, columns]
  Tensor counts;   // [experts]; empty: each matrix sees `rows` rows
  float rows = 0;
};

// x [..., k] times a matrix, or a batch of matrices times a batch of x.
Sums of_product(const std::string& name, const Tensor& x, bool batched) {
  const Tensor squares = square(cast(x, DType::f32));
  Sums sums{name, {}, {}, static_cast<float>(x.elements() / x.size(-1))};
  Axes rows;
  for (int axis = batched ? 1 : 0; axis + 1 < x.rank(); ++axis) rows.push_back(axis);
  sums.squares = sum(squares, rows);
  if (batched) sums.rows /= static_cast<float>(x.size(0));
  return sums;
}

// x [rows, k] or [rows, used, k]; experts: those that each row goes to, [rows, used].
Sums of_experts(const std::string& name, const Tensor& x, const Tensor& experts, int64_t count) {
  const Tensor squares = square(cast(x, DType::f32));
  const Tensor chosen = one_hot(experts, count);  // [rows, used, count]
  const int64_t slots = experts.elements();
  const Tensor by_row = x.rank() == 2 ? sum(chosen, {1}) : chosen.reshape({slots, count});
  Sums sums{name, {}, sum(chosen, {0, 1})};
  sums.squares = matmul(by_row.transpose().contiguous(),
                        squares.reshape({squares.elements() / x.size(-1), x.size(-1)}));
  return sums;
}

// All products of the layers' weights in the graph behind x.
std::vector<Sums> sums_behind(const Tensor& x, const std::map<const Node*, std::string>& names) {
  std::vector<Sums> found;
  std::set<const Node*> seen;
  std::vector<const Node*> open = {x.node().get()};
  while (!open.empty()) {
    const Node* const node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    for (const Tensor& input : node->inputs)
      if (input) open.push_back(input.node().get());
    if (!node->op || node->inputs.size() < 2) continue;
    const auto name = names.find(node->inputs[1].node().get());
    if (name == names.end() || !name->second.starts_with("blk.")) continue;
    const Tensor &rows = node->inputs[0], &weights = node->inputs[1];
    if (node->op->name() == "expert_matmul")
      found.push_back(of_experts(name->second, rows, node->inputs[2], weights.size(0)));
    // As a file stores them, rows of a matrix are what x is multiplied by.
    else if (node->op->name() == "matmul" && weights.layout().stride(-2) == 1)
      found.push_back(of_product(name->second, rows, weights.rank() == 3));
  }
  return found;
}

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "imatrix: " + message);
}

// Adds the numbers of one chunk; both lists are as long, or the first one is empty.
void add(const std::vector<float>& numbers, std::vector<double>& to) {
  to.resize(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) to[i] += static_cast<double>(numbers[i]);
}

}  // namespace

ImportanceMatrix measure_importance(
    Model& model, std::span<const int32_t> tokens, int64_t chunk, int32_t bos,
    const std::function<bool(int64_t done, int64_t chunks)>& progress) {
  Model::State& state = model.state();
  if (state.config.has_decoder())
    refuse(
        fmt::format("{} has an encoder and a decoder, and a text is not both what one sees and "
                    "what the other writes; quantize it without an importance matrix",
                    state.config.architecture));
  if (chunk < 2 || chunk > std::min(model.context(), model.batch_rows()))
    refuse(fmt::format("chunks of {} tokens; they may have from 2 to {}, the context and the batch",
                       chunk, std::min(model.context(), model.batch_rows())));
  const int64_t chunks = static_cast<int64_t>(tokens.size()) / chunk;
  if (chunks == 0)
    refuse(
        fmt::format("the text has {} tokens, a chunk needs {}; give a longer text or a smaller "
                    "--context",
                    tokens.size(), chunk));

  std::vector<int32_t> ids(static_cast<size_t>(chunk));
  const SequencePart part{model.side_slot(), 0, ids, Wanted::none};
  const std::span<const SequencePart> parts(&part, 1);
  const BatchShape shape = state.shape_for(parts);
  if (shape.rows != chunk)
    refuse(
        fmt::format("this device reads {} tokens in a batch of {}, whose other rows would count; "
                    "use chunks of that size, or --device cpu",
                    chunk, shape.rows));
  BatchPlan plan(shape, state.cache);
  plan.batches = state.make_batches(plan.layout.words());
  Blocks blocks(state.config, state.weights, state.cache, state.ropes, plan.layout, plan.batches);
  const std::vector<Sums> sums = sums_behind(state.through_layers(blocks), state.weights.names);
  if (sums.empty()) refuse("no product of the model reads weights as the file stores them");
  std::vector<Tensor> outputs;
  for (const Sums& each : sums) {
    outputs.push_back(each.squares);
    if (each.counts) outputs.push_back(each.counts);
  }
  plan.plan = std::make_unique<Plan>(outputs);

  struct Total {
    std::vector<double> squares, counts;
  };
  std::map<std::string, Total> totals;
  ImportanceMatrix result;
  result.chunk_tokens = static_cast<uint32_t>(chunk);
  for (int64_t c = 0; c < chunks; ++c) {
    const SideWork work(model.cache());
    std::ranges::copy(tokens.subspan(static_cast<size_t>(c * chunk), ids.size()), ids.begin());
    if (bos >= 0) ids[0] = bos;
    state.check(parts);
    state.reserve(parts);
    plan.write(plan.layout.pack(parts, state.cache));
    state.advance_states(parts);
    plan.plan->run();
    size_t at = 0;
    const auto next = [&] {
      const Tensor& like = outputs[at];
      return tensor_over(plan.plan->output(at++), like.node()->outputs[like.output()])
          .to_vector<float>();
    };
    for (const Sums& each : sums) {
      Total& total = totals[each.name];
      const std::vector<float> squares = next();
      if (!all_finite(squares))
        refuse(
            fmt::format("what {} is multiplied by is not finite in chunk {}; is the model sound?",
                        each.name, c + 1));
      add(squares, total.squares);
      add(each.counts ? next() : std::vector<float>{each.rows}, total.counts);
    }
    ++result.chunks;
    if (progress && !progress(c + 1, chunks)) break;
  }
  for (const auto& [name, total] : totals)
    result.tensors[name] = {{total.squares.begin(), total.squares.end()},
                            {total.counts.begin(), total.counts.end()}};
  return result;
}

}  // namespace prism::llm
