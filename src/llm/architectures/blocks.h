// The blocks that architectures are put together from, over the graph of one forward.
#pragma once

#include <cstdint>
#include <vector>

#include "llm/model/batch.h"
#include "llm/model/config.h"
#include "llm/model/kv_cache.h"
#include "llm/model/weights.h"
#include "prism/tensor.h"

namespace prism::llm {

// Frequencies of the rotary embedding on one device, for every plan of a model.
struct RopeTable {
  Tensor frequencies;  // [rope_dims / 2]
  double magnitude = 1;
};
struct RopeTables {
  Device device;
  RopeTable all, local;  // local: of windowed layers
};
std::vector<RopeTables> make_rope_tables(const Config& config, const Weights& weights,
                                         const std::vector<Device>& devices);

// The words of a batch on one device.
struct DeviceBatch {
  Device device;
  Tensor words;
};

enum class Gating : uint8_t {
  silu,
  gelu,          // by tanh
  silu_clamped,  // of gpt-oss
  gelu_alone,    // no gate: an activation alone, by the error function
};

class Blocks {
 public:
  Blocks(const Config& config, const Weights& weights, const KvCache& cache,
         const std::vector<RopeTables>& ropes, const BatchLayout& layout,
         const std::vector<DeviceBatch>& batches)
      : config_(config),
        weights_(weights),
        cache_(cache),
        ropes_(ropes),
        layout_(layout),
        batches_(batches) {}

  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  void enter_layer(int64_t layer) { layer_ = layer; }
  int64_t layer() const { return layer_; }

  // Of the batch, on a device.
  Tensor tokens(const Device& device) const { return layout_.tokens(words(device)); }
  Tensor positions(const Device& device) const { return layout_.positions(words(device)); }
  // The rows of x that are wanted.
  Tensor wanted_rows(const Tensor& x) const;

  Tensor norm(const Tensor& x, const Norm& norm) const;        // by the root of the mean square
  Tensor layer_norm(const Tensor& x, const Norm& norm) const;  // mean taken off
  Tensor project(const Tensor& x, const Linear& linear) const;
  // Attention of the layer at hand, from its input to its output product: q, k and v with biases,
  // norms, rotation; k and v go into the cache; window, soft cap and sinks as the model has them.
  Tensor attention(const LayerWeights& w, const Tensor& x) const;
  Tensor feed_forward(const LayerWeights& w, const Tensor& x, Gating gating) const;
  // Each row through the experts that its router likes best, summed by how much it likes them.
  Tensor experts(const LayerWeights& w, const Tensor& x, Gating gating) const;

 private:
  static Tensor gated(const Tensor& gate, const Tensor& up, Gating gating);
  const Tensor& words(const Device& device) const;
  const RopeTables& ropes(const Device& device) const;

  const Config& config_;
  const Weights& weights_;
  const KvCache& cache_;
  const std::vector<RopeTables>& ropes_;
  const BatchLayout& layout_;
  const std::vector<DeviceBatch>& batches_;
  int64_t layer_ = 0;
};

}  // namespace prism::llm
