// Creates the plans of a model on first use, one per batch size.
#include <algorithm>
#include <array>
#include <bit>

#include "llm/model/model_state.h"
#include "tensor/storage.h"

namespace prism::llm {

namespace {

// Batch sizes that have plans on devices that record launches; other sizes are padded. Products
// with packed weights take 16 rows at a time, so 24 and 40 rows would cost as much as 32 and 48.
constexpr std::array<int64_t, 18> kRowBuckets = {1,   2,   4,   8,   16,  32,  48,   64,   96,
                                                 128, 192, 256, 384, 512, 768, 1024, 1536, 2048};

int64_t bucket(int64_t rows, int64_t most) {
  for (const int64_t each : kRowBuckets)
    if (each >= rows) return std::min(each, most);
  return (rows + 1023) / 1024 * 1024;
}

int64_t power_of_two(int64_t count) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
}

// The sequences of a plan for prompts: few sizes, because a plan costs more than the groups of
// sequences that are not there, which leave at once.
int64_t sequence_bucket(int64_t count) {
  int64_t size = 1;
  while (size < count) size *= 8;
  return size;
}

// On the CPU a plan has the exact number of rows of its batch. Prompts have many lengths, so only
// this many plans are kept.
constexpr size_t kMostPlans = 24;

}  // namespace

Tensor tensor_over(const std::shared_ptr<Storage>& storage, const Spec& spec) {
  auto node = std::make_shared<Node>();
  node->outputs = {spec};
  node->device = storage->device;
  node->storage = {storage};
  return {std::move(node), 0};
}

void BatchPlan::write(std::span<const int32_t> words, int64_t first) const {
  for (const DeviceBatch& each : batches) {
    const std::shared_ptr<Storage>& storage = each.words.node()->storage[0];
    write_storage(*storage, static_cast<uint64_t>(first) * sizeof(int32_t), std::as_bytes(words));
  }
}

std::vector<DeviceBatch> Model::State::make_batches(int64_t words) const {
  std::vector<DeviceBatch> batches;
  for (const Device& device : devices)
    batches.push_back({device, empty({words}, DType::i32, device)});
  return batches;
}

Tensor Model::State::through_layers(Blocks& blocks) const {
  return through_layers(blocks, config.has_decoder() ? config.encoder_layers : 0, config.layers);
}

std::vector<Tensor> Model::State::encoded(Blocks& blocks) const {
  const Placement& placement = options.placement;
  const Tensor x = blocks.norm(
      through_layers(blocks, 0, config.encoder_layers).to(placement.output), weights.encoder_norm);
  std::vector<Tensor> results = {x};
  for (int64_t layer = config.encoder_layers; layer < config.layers; ++layer) {
    const auto i = static_cast<size_t>(layer);
    blocks.enter_layer(layer);
    const CachedRows kept = blocks.keep_encoded(weights.layers[i], x.to(placement.layers[i]));
    results.insert(results.end(), {kept.k_cache, kept.v_cache});
  }
  return results;
}

Tensor Model::State::through_layers(Blocks& blocks, int64_t first, int64_t end) const {
  Tensor x = architecture->embed(blocks);
  for (int64_t layer = first; layer < end; ++layer) {
    const auto i = static_cast<size_t>(layer);
    blocks.enter_layer(layer);
    x = architecture->layer(blocks, weights.layers[i], x.to(options.placement.layers[i]));
  }
  return x;
}

int64_t Model::State::padded_rows(int64_t rows) const {
  return only_cpu ? rows : bucket(rows, std::max(rows, options.batch_rows));
}

BatchShape Model::State::shape_for(std::span<const SequencePart> parts) const {
  int64_t rows = 0, wanted = 0;
  bool each_one_row = true;
  for (const SequencePart& part : parts) {
    const auto count = static_cast<int64_t>(part.tokens.size());
    rows += count;
    if (part.wanted != Wanted::none) wanted += part.wanted == Wanted::all ? count : 1;
    each_one_row = each_one_row && count == 1 && part.wanted != Wanted::none;
  }
  BatchShape shape;
  shape.each_one_row = each_one_row;
  shape.rows = padded_rows(rows);
  if (each_one_row) {
    shape.sequences = shape.wanted = shape.rows;
  } else {
    const auto sequences = static_cast<int64_t>(parts.size());
    shape.sequences =
        only_cpu ? power_of_two(sequences) : std::min(sequence_bucket(sequences), shape.rows);
    // Mostly a row of each sequence; on devices their number alone does not make another plan.
    const int64_t most = std::max(power_of_two(wanted), only_cpu ? 1 : shape.sequences);
    shape.wanted = wanted == rows ? shape.rows : std::min(most, shape.rows);
  }
  return shape;
}

int64_t Model::padded_rows(int64_t rows) const { return state_->padded_rows(rows); }

int64_t Model::rows_before_jump(int64_t rows) const {
  if (state_->only_cpu) {
    const int64_t alike = rows_alike(1);
    return rows > alike ? alike : 0;
  }
  const auto above = std::ranges::lower_bound(kRowBuckets, rows);
  return above == kRowBuckets.begin() ? 0 : *std::prev(above);
}

BatchPlan& Model::State::plan_for(const BatchShape& shape, Result result) {
  const auto key = std::pair(shape, result);
  if (const auto known = plans.find(key); known != plans.end()) {
    known->second.last_used = ++runs;
    return known->second;
  }
  if (plans.size() >= kMostPlans) {
    plans.erase(std::ranges::min_element(plans, {},
                                         [](const auto& entry) { return entry.second.last_used; }));
  }
  BatchPlan made(shape, cache);
  made.batches = make_batches(made.layout.words());
  Blocks blocks(config, weights, cache, ropes, made.layout, made.batches);
  std::vector<Tensor> outputs;
  if (result == Result::encoded) {
    outputs = encoded(blocks);
    outputs[0] = blocks.wanted_rows(outputs[0]);
  } else {
    Tensor& x = outputs.emplace_back(through_layers(blocks));
    if (result != Result::nothing) {
      x = blocks.wanted_rows(x).to(options.placement.output);
      x = architecture->hidden(blocks, x);
    }
    if (result == Result::logits) x = architecture->logits(blocks, x);
  }
  made.output = outputs[0].node()->outputs[outputs[0].output()];
  PlanOptions plan_options;
  plan_options.arenas = arenas;
  made.plan = std::make_unique<Plan>(outputs, std::span<const Tensor>(), plan_options);
  made.last_used = ++runs;
  ++plans_made;
  // Release outgrown arenas in the other plans now rather than at their next run.
  for (auto& [shape_and_result, other] : plans) other.plan->use_shared_arenas();
  return plans.emplace(key, std::move(made)).first->second;
}

}  // namespace prism::llm
