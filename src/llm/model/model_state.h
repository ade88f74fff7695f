// The private state of a model that its plans share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "llm/model/model.h"
#include "tensor/plan/plan.h"

namespace prism::llm {

// encoded: the hidden states of an encoder, whose decoder's cache is filled.
enum class Result : uint8_t { logits, hidden, nothing, encoded };

// A plan and the device data it reads.
struct BatchPlan {
  BatchPlan(const BatchShape& shape, const KvCache& cache) : layout(shape, cache) {}
  BatchLayout layout;
  std::vector<DeviceBatch> batches;  // one per device of the model
  std::unique_ptr<Plan> plan;
  Spec output;  // the plan's first output; zero rows if there is none
  Device output_device;
  uint64_t last_used = 0;

  // Uploads words of a batch to every device.
  void write(std::span<const int32_t> words, int64_t first = 0) const;
};

struct Model::State {
  Config config;
  ModelOptions options;
  std::unique_ptr<Architecture> architecture;
  Weights weights;
  std::string adapters;  // Adapters::fingerprint
  KvCache cache;
  std::vector<Device> devices;  // without duplicates
  std::vector<RopeTables> ropes;
  std::map<std::pair<BatchShape, Result>, BatchPlan> plans;
  std::shared_ptr<SharedArenas> arenas = std::make_shared<SharedArenas>();
  uint64_t runs = 0, plans_made = 0;
  bool only_cpu = false;
  int64_t few_rows = 1;  // up to which the CPU computes each row as alone

  // The graph from tokens to the last layer's output, on the last layer's device; of a model with
  // an encoder and a decoder, that of the decoder.
  Tensor through_layers(Blocks& blocks) const;
  Tensor through_layers(Blocks& blocks, int64_t first, int64_t end) const;
  // The graph of its encoder: the normed states of all rows, then what fills the decoder's cache.
  std::vector<Tensor> encoded(Blocks& blocks) const;
  // Device data for a plan. words: at least those of the layout.
  std::vector<DeviceBatch> make_batches(int64_t words) const;
  BatchPlan& plan_for(const BatchShape& shape, Result result);
  int64_t padded_rows(int64_t rows) const;  // of the plan that runs so many
  // The shape of the plan that runs this batch.
  BatchShape shape_for(std::span<const SequencePart> parts) const;
  void check(std::span<const SequencePart> parts) const;
  void check_encoded(const SequencePart& part) const;
  // Gives the texts blocks for the positions of these parts. Throws kOutOfMemory if the cache has
  // too few.
  void reserve(std::span<const SequencePart> parts);
  // The states of recurrent layers are after these parts.
  void advance_states(std::span<const SequencePart> parts);
  // Throws DeviceFailure if one of the model's devices was abandoned by other work. Tensors would
  // then move to the fallback one by one and split the KV cache across devices.
  void check_devices() const;
  // Where a decoder follows the encoder, parts at position 0 run through the encoder first.
  Tensor run(std::span<const SequencePart> parts, Result result);
  Tensor run_batch(std::span<const SequencePart> parts, Result result);
  // The hidden states of each part as one row.
  std::vector<float> pooled(Model& model, std::span<const SequencePart> parts, Pooling pooling);
  std::vector<float> hidden_rows(std::span<const SequencePart> parts);
  // What the head, or the matrices behind it, make of such rows.
  Tensor classified(const Tensor& rows) const;
  Tensor densified(const Tensor& rows) const;
};

// A tensor that wraps existing storage.
Tensor tensor_over(const std::shared_ptr<Storage>& storage, const Spec& spec);

}  // namespace prism::llm
