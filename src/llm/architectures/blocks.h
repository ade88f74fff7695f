// The building blocks of architectures, which construct the graph of one forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "llm/model/batch.h"
#include "llm/model/config.h"
#include "llm/model/kv_cache.h"
#include "llm/model/weights.h"
#include "ops/attention/rope_to_cache.h"
#include "prism/tensor.h"

namespace prism {
struct AttentionSettings;
}

namespace prism::llm {

// Rotary embedding frequencies on one device, shared by all plans of a model.
struct RopeTable {
  Tensor frequencies;  // [rope_dims / 2]
  double magnitude = 1;
};
struct RopeTables {
  Device device;
  RopeTable all, local;  // local: for windowed layers
};
std::vector<RopeTables> make_rope_tables(const Config& config, const Weights& weights,
                                         const std::vector<Device>& devices);

// The packed input of a batch on one device.
struct DeviceBatch {
  Device device;
  Tensor words;
};

// Whole sequences of one length, on one device. Nothing is cached, so the graph has gradients.
struct TrainingBatch {
  Tensor tokens, positions;  // i32 [rows], one sequence after the other
  int64_t sequences = 1;
  Tensor wanted = {};  // i32: the rows whose logits are wanted; empty: all
  std::function<Tensor(const Tensor&)> adapter_input = {};  // drops; empty: as it is
  DType compute = DType::f32;  // of norms, and so of the products and activations after them
};

// Biases of distances: beyond this, all have the last bucket.
inline constexpr int64_t kFarthest = 128;

class Blocks {
 public:
  Blocks(const Config& config, const Weights& weights, const KvCache& cache,
         const std::vector<RopeTables>& ropes, const BatchLayout& layout,
         const std::vector<DeviceBatch>& batches)
      : config_(config),
        weights_(weights),
        ropes_(ropes),
        cache_(&cache),
        layout_(&layout),
        batches_(&batches) {}
  Blocks(const Config& config, const Weights& weights, const std::vector<RopeTables>& ropes,
         const TrainingBatch& batch)
      : config_(config), weights_(weights), ropes_(ropes), training_(&batch) {}

  const Config& config() const { return config_; }
  const Weights& weights() const { return weights_; }
  void enter_layer(int64_t layer) { layer_ = layer; }
  int64_t layer() const { return layer_; }
  Tensor carried;  // what an architecture passes from one layer to the next beside x

  // Inputs of the batch on a device.
  Tensor tokens(const Device& device) const {
    return training_ ? training_->tokens : layout_->tokens(words(device));
  }
  Tensor positions(const Device& device) const {
    return training_ ? training_->positions : layout_->positions(words(device));
  }
  // Inputs of the layers beside x, which an architecture makes in embed(): [rows, layers, length].
  void set_layer_inputs(const Tensor& inputs) { layer_inputs_ = inputs; }
  const Tensor& layer_inputs() const { return layer_inputs_; }
  // Recurrent layers: which rows belong to which text, and the states of the current layer in the
  // order of LayerConfig::states.
  Tensor texts(const Device& device) const { return layout_->texts(words(device)); }
  const Tensor& state(size_t i) const { return cache_->states().of_layer(layer_)[i]; }
  // Selects the rows of x whose results are wanted.
  Tensor wanted_rows(const Tensor& x) const;

  Tensor norm(const Tensor& x, const Norm& norm) const;       // of the model's kind
  Tensor post_norm(const Tensor& x, const Norm& norm) const;  // of the result of a block
  // The product with a matrix and its adapters; also for rows routed to experts (expert_matmul).
  Tensor project(const Tensor& x, const Linear& linear) const;
  Tensor project(const Tensor& x, const Linear& linear, const Tensor& experts) const;
  // The model's own adapters: each row uses the one that the last token of its text up to it
  // switched on, or the mean of several, rounded; 0: none. adapters: f32 [rows], those that the
  // rows themselves switch on.
  void choose_adapters(const Tensor& adapters);
  // Attention of the current layer, including the output projection: q, k and v with biases,
  // limits, norms and rotation; writes k and v to the KV cache; applies the model's window, soft
  // cap, sinks and gate.
  Tensor attention(const LayerWeights& w, const Tensor& x);
  // Attention to the keys of a window and to compressed ones of all positions before, see
  // compressed_attention.cpp: w.latent.q_a and q_b make queries, w.k the keys, which are the values
  // too.
  Tensor compressed_attention(const LayerWeights& w, const Tensor& x);
  // Attention of a decoder's layer to the encoder's result, with its norm; and what keeps the
  // layer's keys and values of that result in the cache.
  Tensor cross_attention(const LayerWeights& w, const Tensor& x) const;
  CachedRows keep_encoded(const LayerWeights& w, const Tensor& x) const;
  Tensor feed_forward(const LayerWeights& w, const Tensor& x) const;
  // Routes each row to its top experts and sums their results, weighted by the router; adds the
  // shared expert.
  Tensor experts(const LayerWeights& w, const Tensor& x) const { return experts(w, x, x); }
  // The same, chosen by other rows than those they work on.
  Tensor experts(const LayerWeights& w, const Tensor& x, const Tensor& chosen_by) const;
  static Tensor softplus(const Tensor& x);  // log(1 + exp(x)) without an overflow
  // x [rows, heads, in] times the matrix of each head, [heads, out, in]: [rows, heads, out].
  static Tensor by_heads(const Tensor& x, const Tensor& matrices);
  struct Chosen {
    Tensor experts, weights;  // [rows, used]
  };
  Chosen choose(const LayerWeights& w, const Tensor& x) const;
  // The weighted sum of the chosen experts' results.
  Tensor routed(const LayerWeights& w, const Tensor& x, const Chosen& chosen) const;
  // The model's activation of `up`, or of `gate` times `up`. A limit above 0 bounds both factors.
  Tensor activate(const Tensor& up) const;
  Tensor activate(const Tensor& gate, const Tensor& up, double limit = 0) const;

 private:
  struct Heads {
    Tensor q, k, v;  // [rows, heads or kv_heads, head_dim]; k and v are empty if others are shared
    Tensor gate;     // of the heads before `out`, if q's matrix makes it
  };
  // How the heads of the current layer are rotated; without frequencies they are not.
  struct Rotation {
    RopeOptions options;
    Tensor frequencies;
  };
  Rotation rotation(const Device& device) const;
  // Queries or keys with zeros behind them, which change no score: attention takes no values that
  // are longer than keys.
  Tensor as_long_as_values(const Tensor& x) const;
  // Writes keys and values of the current layer, and rotates q.
  CachedRows to_cache(Heads heads, Rotation rotation);
  // The heads' results from the cache: [rows, heads, value_dim]. mask as in AttentionSettings.
  Tensor attend(const LayerWeights& w, const CachedRows& rows, const Tensor& mask = {}) const;
  // Latent attention: queries are multiplied by k_b instead of keys, results by v_b instead of
  // values, so that the cache holds only the latent elements.
  Tensor latent_attention(const LayerWeights& w, const Tensor& x);
  // --- parts of compressed_attention
  using Rotate = std::function<Tensor(const Tensor& heads, const Tensor& positions)>;
  struct WindowAndCompressed {
    Tensor keys;   // [texts, keys, 1, dim]
    Tensor mask;   // [rows, keys]
    Tensor spans;  // over the keys
  };
  Tensor compression_inputs(const LayerWeights& w, const Tensor& x) const;
  Tensor compressed_keys(const CompressorWeights& by, const Tensor& rows,
                         const Tensor& is_first) const;
  WindowAndCompressed window_and_compressed(const LayerWeights& w, const Tensor& x,
                                            const Tensor& low, const CachedRows& own,
                                            const Rotate& rotated) const;
  // The mask of the keys that the indexer chooses; by: what its queries are made from.
  Tensor chosen_keys(const LayerWeights& w, const Tensor& x, const Tensor& by);
  // The biases of the distances between queries and keys as a mask, which hides the encoder's
  // positions from a decoder.
  Tensor distance_biases(const LayerWeights& w, const Device& device);
  // Gate, inner norm and output projection.
  Tensor attention_output(const LayerWeights& w, const Tensor& x, Tensor seen) const;
  // Attention within the sequences of a training batch.
  Tensor attend_sequences(const CachedRows& rows, const AttentionSettings& settings) const;
  // What the adapters of a matrix add to its product with x.
  Tensor adapted(const Tensor& x, const Linear& by) const;
  Tensor adapter_input(const Tensor& x) const {
    return training_ && training_->adapter_input ? training_->adapter_input(x) : x;
  }
  Heads heads(const LayerWeights& w, const Tensor& x) const;
  Tensor head_norm(const Tensor& x, const Norm& norm) const;
  // What queries are scaled by at their positions: [rows, 1, 1].
  Tensor temperature(const Device& device) const;
  // The limit of the current layer in such a list of the configuration.
  double limit(const std::vector<double>& by_layer) const {
    return by_layer.empty() ? 0 : by_layer[static_cast<size_t>(layer_)];
  }
  const Tensor& words(const Device& device) const;
  const RopeTables& ropes(const Device& device) const;

  const Config& config_;
  const Weights& weights_;
  const std::vector<RopeTables>& ropes_;
  // Either these or the training batch.
  const KvCache* cache_ = nullptr;
  const BatchLayout* layout_ = nullptr;
  const std::vector<DeviceBatch>* batches_ = nullptr;
  const TrainingBatch* training_ = nullptr;
  int64_t layer_ = 0;
  Tensor layer_inputs_;
  Tensor own_adapters_;                    // i32 [rows, 1]
  std::map<int64_t, CachedRows> written_;  // of the layers so far
  Tensor chosen_;        // the mask of the indexer before, for layers that have none of their own
  Tensor first_biases_;  // distance_biases of the first layer
};

}  // namespace prism::llm
