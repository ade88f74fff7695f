// Loads models and runs batches through their plans.
#include "llm/model/model.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/fast_hash.h"
#include "cpu/products/quantised_product.h"
#include "llm/architectures/model_config.h"
#include "llm/model/adapters.h"
#include "llm/model/finite.h"
#include "llm/model/model_state.h"
#include "prism/error.h"
#include "runtime/fallback.h"
#include "tensor/storage.h"

namespace prism::llm {

namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

void check_placement(const Placement& placement, const Config& config) {
  const auto layers = static_cast<size_t>(config.layers);
  if (placement.layers.size() != layers ||
      (!placement.experts.empty() && placement.experts.size() != layers))
    fail(fmt::format(
        "model: the placement covers {} layers and the experts of {}, the model has {} layers",
        placement.layers.size(), placement.experts.size(), layers));
  const bool all = placement.embedding && placement.output &&
                   std::ranges::all_of(placement.layers, [](const Device& d) { return bool(d); });
  if (!all) fail("model: the placement leaves parts without a device");
  if (placement.context < 1)
    fail("model: the placement has a context of 0 tokens; at least 1 is needed");
}

// Placements have all layers of the file, also those that only propose tokens.
void leave_out_layers(const GgufFile& file, const Config& config, Placement& placement) {
  const auto all = static_cast<size_t>(read_config(file).layers);
  for (std::vector<Device>* const each : {&placement.layers, &placement.experts})
    if (each->size() == all) each->resize(static_cast<size_t>(config.layers));
}

// Texts that embed() computes at once. A side slot without blocks costs only its table.
constexpr int64_t kSideSlots = 16;

std::vector<Device> devices_of(const Placement& placement) {
  std::vector<Device> devices;
  const auto add = [&](const Device& device) {
    if (!std::ranges::count(devices, device)) devices.push_back(device);
  };
  add(placement.embedding);
  for (const Device& each : placement.layers) add(each);
  add(placement.output);
  return devices;
}

// The most rows that the CPU's products with all of these weights compute as they do alone.
int64_t few_rows(const Weights& weights) {
  constexpr uint64_t kPlainRows = 4;  // without block types
  uint64_t rows = UINT64_MAX;
  for_each_weight(weights, [&](const Tensor& each) {
    if (each.type().is_block()) rows = std::min(rows, cpu::few_rows(each.type().block()));
  });
  return static_cast<int64_t>(rows == UINT64_MAX ? kPlainRows : rows);
}

}  // namespace

Placement place_on(const GgufFile& file, const Device& device, int64_t context,
                   ElementType kv_type) {
  const Config config = read_config(file);
  Placement placement;
  placement.layers.assign(static_cast<size_t>(config.layers), device);
  placement.embedding = placement.output = device;
  placement.kv_type = kv_type;
  placement.context = context > 0 ? context : config.context;
  return placement;
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() {
  if (!state_) return;
  // Steps that are still queued use the plans and buffers that are released next.
  try {
    wait();
  } catch (const std::exception&) {  // a destructor cannot report it
  }
}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

Model Model::load(const GgufFile& file, const ModelOptions& options) {
  auto state = std::make_unique<State>();
  state->architecture = make_architecture(std::string(file.string("general.architecture")));
  state->config = model_config(file, *state->architecture);
  state->options = options;
  leave_out_layers(file, state->config, state->options.placement);
  const Placement& placement = state->options.placement;
  check_placement(placement, state->config);
  const FallbackHeld held;
  if (options.slots < 1 || options.batch_rows < 1)
    fail(fmt::format("model: slots is {} and batch_rows is {}; both must be at least 1",
                     options.slots, options.batch_rows));
  const Adapters adapters(file, options.adapters);
  state->adapters = adapters.fingerprint();
  state->weights = load_weights(file, state->config, *state->architecture, placement,
                                options.progress, &adapters);
  state->cache = KvCache(state->config, placement,
                         {.slots = options.slots,
                          .side_slots = kSideSlots,
                          .positions = placement.context,
                          .shared = options.cache_positions,
                          .batch_rows = options.batch_rows,
                          .block = options.cache_block});
  state->devices = devices_of(placement);
  state->only_cpu =
      std::ranges::all_of(state->devices, [](const Device& each) { return each.info().is_cpu; });
  state->few_rows = few_rows(state->weights);
  state->ropes = make_rope_tables(state->config, state->weights, state->devices);
  return Model(std::move(state));
}

const Config& Model::config() const { return state_->config; }
const Placement& Model::placement() const { return state_->options.placement; }
KvCache& Model::cache() { return state_->cache; }
const KvCache& Model::cache() const { return state_->cache; }
int64_t Model::batch_rows() const { return state_->options.batch_rows; }
int64_t Model::rows_alike(int64_t rows) const {
  const int64_t few = state_->few_rows;
  return state_->only_cpu && rows <= few ? std::min(few, batch_rows()) : batch_rows();
}
size_t Model::plans() const { return state_->plans_made; }

std::string Model::cache_layout() const {
  const KvCache& of = cache();
  std::string text = fmt::format("{} blocks of {}", of.type().name(), of.block());
  for (size_t layer = 0; layer < of.layers(); ++layer)
    text += fmt::format(" {}", of.block_bytes(layer));
  // Some models have other divisors for long contexts.
  const std::vector<float>& divisors = state_->weights.rope_divisors;
  text += " rotation " + fast_hash(std::as_bytes(std::span(divisors)));
  return state_->adapters.empty() ? text : text + " adapters " + state_->adapters;
}

void Model::State::check(std::span<const SequencePart> parts) const {
  size_t rows = 0;
  const int64_t slots = cache.slots() + cache.side_slots();
  std::vector<bool> taken(static_cast<size_t>(slots));
  for (const SequencePart& part : parts) {
    rows += part.tokens.size();
    if (part.slot < 0 || part.slot >= slots)
      fail(fmt::format("model: slot {} does not exist, there are {}", part.slot, slots));
    if (taken[static_cast<size_t>(part.slot)])
      fail(fmt::format("model: slot {} occurs twice in one batch", part.slot));
    taken[static_cast<size_t>(part.slot)] = true;
    if (part.tokens.empty()) fail(fmt::format("model: no tokens for slot {}", part.slot));
    const int64_t end = part.first_position + static_cast<int64_t>(part.tokens.size());
    if (part.first_position < 0 || end > cache.positions())
      fail(
          fmt::format("model: positions {} to {} exceed the context of {}; load the model "
                      "with a longer context, or shorten the text",
                      part.first_position, end - 1, cache.positions()));
    if (!cache.states().holds(part.slot, part.first_position))
      fail(
          fmt::format("model: slot {} continues at position {}, and its recurrent layers have seen "
                      "{} tokens; continue there, or begin at position 0",
                      part.slot, part.first_position, cache.states().length(part.slot)));
    if (config.has_decoder()) check_encoded(part);
    for (const int32_t token : part.tokens)
      if (token < 0 || token >= config.vocabulary)
        fail(fmt::format("model: token {} is out of range, the vocabulary has {}", token,
                         config.vocabulary));
  }
  if (rows > static_cast<size_t>(options.batch_rows))
    fail(fmt::format("model: the batch has {} tokens, at most {} are allowed", rows,
                     options.batch_rows));
}

void Model::State::check_encoded(const SequencePart& part) const {
  const int64_t encoded = cache.encoded(part.slot);
  if (part.first_position > 0 && (encoded == 0 || part.first_position < encoded))
    fail(
        fmt::format("model: slot {} continues at position {}, and its encoder has seen {} tokens; "
                    "give the encoder its whole text at position 0, and the decoder its tokens "
                    "after it",
                    part.slot, part.first_position, encoded));
}

void Model::State::reserve(std::span<const SequencePart> parts) {
  for (const SequencePart& part : parts)
    if (!cache.reserve(part.slot, part.first_position,
                       part.first_position + static_cast<int64_t>(part.tokens.size())))
      throw Error(
          ErrorCode::kOutOfMemory,
          fmt::format("model: the KV cache has no free block for {} tokens from position {} on; "
                      "finish other texts, or load the model with a larger cache",
                      part.tokens.size(), part.first_position));
}

void Model::State::advance_states(std::span<const SequencePart> parts) {
  for (const SequencePart& part : parts)
    cache.states().advance(part.slot,
                           part.first_position + static_cast<int64_t>(part.tokens.size()));
}

void Model::State::check_devices() const {
  for (const Device& device : devices)
    if (device.is_given_up())
      throw DeviceFailure(Error(ErrorCode::kDeviceLost,
                                fmt::format("model: {} was abandoned for {} while this model "
                                            "still uses it; load the model again",
                                            device.id(), device.current().id())),
                          device);
}

Tensor Model::State::run(std::span<const SequencePart> parts, Result result) {
  check(parts);
  check_devices();
  const FallbackHeld held;
  if (!config.has_decoder()) return run_batch(parts, result);
  std::vector<SequencePart> whole, others;
  for (const SequencePart& part : parts)
    (part.first_position == 0 ? whole : others).push_back(part);
  const bool is_hidden = result == Result::hidden && others.empty();
  for (const SequencePart& part : whole)
    if (part.wanted != Wanted::none && !is_hidden)
      fail(
          "model: results of the encoder's tokens are wanted, which only hidden() has, of them "
          "alone; those of the decoder follow them");
  const Tensor states = run_batch(whole, Result::encoded);
  return is_hidden ? states : run_batch(others, result);
}

Tensor Model::State::run_batch(std::span<const SequencePart> parts, Result result) {
  if (parts.empty()) return {};
  int64_t wanted = 0;
  for (const SequencePart& part : parts)
    wanted += part.wanted == Wanted::all    ? static_cast<int64_t>(part.tokens.size())
              : part.wanted == Wanted::last ? 1
                                            : 0;
  if (wanted == 0 && result != Result::encoded) result = Result::nothing;
  reserve(parts);
  for (const SequencePart& part : parts)
    if (result == Result::encoded) cache.set_encoded(part.slot, std::ssize(part.tokens));
  BatchPlan& plan = plan_for(shape_for(parts), result);
  plan.write(plan.layout.pack(parts, cache));
  advance_states(parts);
  if (wanted > 0) plan.plan->release_output(0);
  plan.plan->run();
  if (wanted == 0) return {};
  return tensor_over(plan.plan->output(0), plan.output).slice(0, 0, wanted);
}

Tensor Model::forward(std::span<const SequencePart> parts) {
  return state_->run(parts, Result::logits);
}

Tensor Model::hidden(std::span<const SequencePart> parts) {
  return state_->run(parts, Result::hidden);
}

void Model::wait() {
  for (const Device& device : state_->devices)
    if (!device.info().is_cpu) watching(device, [&] { device.queue().wait(); });
}

Tensor Model::prefill(int32_t slot, int32_t first_position, std::span<const int32_t> tokens) {
  if (tokens.empty()) fail("model: the prompt has no tokens");
  if (config().has_decoder() && first_position == 0) {
    const SequencePart whole{slot, 0, tokens, Wanted::none};
    forward(std::span(&whole, 1));
    return prefill(slot, static_cast<int32_t>(tokens.size()), {&config().start_token, 1});
  }
  const auto most = static_cast<size_t>(batch_rows());
  while (true) {
    const size_t count = std::min(tokens.size(), most);
    const bool last = count == tokens.size();
    const SequencePart part{slot, first_position, tokens.first(count),
                            last ? Wanted::last : Wanted::none};
    Tensor logits = forward(std::span(&part, 1));
    if (last) return logits;
    tokens = tokens.subspan(count);
    first_position += static_cast<int32_t>(count);
  }
}

std::vector<ModelMemory> Model::memory() const {
  std::vector<ModelMemory> result;
  const State& state = *state_;
  const auto bytes = [](const Tensor& tensor) {
    return tensor ? storage_bytes(tensor.shape(), tensor.type(), tensor.device()) : 0;
  };
  std::vector<Device> devices = state.devices;  // experts may be on other devices
  for (const Device& each : placement().experts)
    if (!std::ranges::count(devices, each)) devices.push_back(each);
  for (const Device& device : devices) {
    ModelMemory memory{device, 0, 0, 0};
    const auto add = [&](const Tensor& tensor) {
      if (tensor && tensor.device() == device) memory.weight_bytes += bytes(tensor);
    };
    for_each_weight(state.weights, add);
    for (size_t layer = 0; layer < state.cache.layers(); ++layer)
      for (const Tensor* each : state.cache.tensors(static_cast<int64_t>(layer)))
        if (each->device() == device) memory.cache_bytes += bytes(*each);
    for (int64_t layer = 0; layer < state.config.layers; ++layer)
      for (const Tensor& each : state.cache.states().of_layer(layer))
        if (each.device() == device) memory.cache_bytes += bytes(each);
    memory.work_bytes = state.arenas->bytes(device);
    result.push_back(memory);
  }
  return result;
}

std::string Model::explain(const BatchShape& shape, bool measured) {
  BatchPlan& plan = state_->plan_for(shape, Result::logits);
  if (measured) {
    const std::vector<int32_t> tokens(static_cast<size_t>(shape.rows), 0);
    std::vector<SequencePart> parts;
    if (!shape.each_one_row) parts.push_back({0, 0, tokens, Wanted::last});
    for (int32_t slot = 0; shape.each_one_row && slot < shape.rows && slot < slots(); ++slot)
      parts.push_back({slot, 0, std::span(tokens).first(1), Wanted::last});
    state_->reserve(parts);
    plan.write(plan.layout.pack(parts, state_->cache));
    state_->advance_states(parts);
    plan.plan->measure();
  }
  return plan.plan->explain();
}

}  // namespace prism::llm
