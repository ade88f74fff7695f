// The weights of a model: tensors looked up by name, checked and placed on their devices.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "llm/model/config.h"
#include "prism/llm/gguf.h"
#include "prism/llm/load_progress.h"
#include "prism/llm/placement.h"
#include "prism/tensor.h"

namespace prism::llm {

class Adapters;  // adapters.h

// A matrix [out, in] with an optional bias. Files may have a factor of the whole matrix beside it
// (NVFP4, BitNet): scale [1], of experts [experts]. With adapters the product is that of
// weight + lora_b lora_a, of which the second part is never multiplied out: [rank, in] and
// [out, rank], f32. The matrices of experts have one axis more in front, and so do those of
// adapters that a model has itself, of which each row uses one (Blocks::choose_adapters).
struct Linear {
  Tensor weight, bias = {}, scale = {};
  Tensor lora_a = {}, lora_b = {};
  std::string name = {};  // of the matrix in the file
  explicit operator bool() const { return static_cast<bool>(weight); }
};
struct Norm {
  Tensor weight, bias;  // either may be missing
  explicit operator bool() const { return static_cast<bool>(weight); }
};

// The matrices of latent attention. k_b and v_b make a head's key and value from the latent
// elements: [heads, latent, head_dim without its rotated part] and [heads, value_dim, latent].
struct LatentWeights {
  Linear q_a, q_b, kv_a;  // q_a may be missing
  Norm q_norm, kv_norm;   // of the results of q_a and kv_a
  Tensor k_b, v_b;
  explicit operator bool() const { return static_cast<bool>(kv_a); }
};
// Makes compressed keys: candidates and their scores, to which those of each place are added
// ([positions of a key, length]), and the norm of the result.
struct CompressorWeights {
  Linear values, scores;
  Tensor places;
  Norm norm;
  explicit operator bool() const { return static_cast<bool>(values); }
};
// Chooses the keys that a query sees, by heads of its own with one key for all of them.
struct IndexerWeights {
  Linear q, k, head_weights;  // head_weights may be missing: the heads count alike
  Norm q_norm, k_norm;
  CompressorWeights compressor = {};  // in place of k
  explicit operator bool() const { return static_cast<bool>(q); }
};
// Attention of a decoder's layer to the encoder's result.
struct CrossWeights {
  Norm norm;
  Linear q, k, v, out;
  explicit operator bool() const { return static_cast<bool>(q); }
};
// Tensors and matrices that only single architectures have, by their names in files: "ssm_a",
// "ssm_dt.bias"; a matrix without ".weight".
using OtherWeights = std::map<std::string, Tensor, std::less<>>;
using OtherMatrices = std::map<std::string, Linear, std::less<>>;

// The weights of one layer. Members that an architecture does not have stay empty.
struct LayerWeights {
  Norm attention_norm, attention_post_norm;
  Linear q, k, v, qkv, out;  // separate q, k and v, or one fused matrix
  Tensor group_out;          // [groups * rank, in]: of each group of heads, before `out`
  Norm q_norm, k_norm;       // [head_dim], [heads, head_dim], or [heads * head_dim] for whole rows
  Tensor sinks;              // [heads]
  LatentWeights latent;
  IndexerWeights indexer;
  CompressorWeights compressor;
  Linear attention_gate;                               // multiplies the heads before `out`
  Norm attention_inner_norm, feed_forward_inner_norm;  // before the last matrix of a block
  Norm feed_forward_norm, feed_forward_post_norm;
  Linear gate, up, down;  // without a gate: up alone (or both fused, gate first)
  Linear router;
  Norm expert_norm;         // of the experts' input, if it has its own
  Tensor expert_bias;       // [experts], added to the scores for the choice
  Tensor experts_of_token;  // [vocabulary, used]: the choice, whatever the scores
  Linear expert_gate, expert_up, expert_down;  // [experts, out, in], biases [experts, out]
  Linear shared_gate, shared_up, shared_down;  // the expert that sees every token
  Linear shared_router;                        // [1, width], its weight
  OtherWeights others;                         // see WeightLoader::keep
  OtherMatrices matrices;                      // see WeightLoader::keep_matrix
  CrossWeights cross;
  // [distances, heads], those from -kFarthest to kFarthest (blocks.h); the first layer's is that of
  // the layers without one.
  Tensor distance_bias;
  // One of them, or an empty tensor.
  Tensor other(std::string_view name) const;
  const Linear& matrix(std::string_view name) const;
};

// The tensors beside the matrices that the layers of an architecture need. One that is not needed
// is loaded if the file has it.
struct RequiredTensors {
  bool qkv_bias = false, output_bias = false;  // of attention
  bool head_norms = false, sinks = false;
  bool feed_forward_bias = false;  // also of the router and the experts
  bool norm_bias = false;          // the norms are layer norms
  bool gate = true;                // the feed-forward layers are gated
  bool expert_gate = true;         // so are the experts; false: unless a file lacks the matrix
  bool shared_expert = true;       // if the sizes say that there is one
  bool keys_are_values = false;    // in layers without a matrix of values
  // Biases that files may have and the model does not add: of q, k and v, of the output of
  // attention, of the norms of q and k, of feed-forward blocks.
  bool no_qkv_bias = false, no_output_bias = false, no_head_norm_bias = false;
  bool no_feed_forward_bias = false;
};

// The names of a layer's norms in files. An architecture does not have those that are empty.
struct NormNames {
  const char* attention = "attn_norm";
  const char* attention_post = "";  // of the result of attention
  const char* feed_forward = "ffn_norm";
  const char* feed_forward_post = "";
};

// What becomes of a pooled text: see HeadConfig, and the matrices that some embeddings end with.
struct HeadWeights {
  Linear inner, out;
  Norm norm;
  std::vector<Linear> dense;
  explicit operator bool() const { return inner || out; }
};

struct Weights {
  Tensor embedding;                           // [vocabulary, width]
  Tensor position_embedding, type_embedding;  // learned embeddings
  Norm embedding_norm, output_norm;
  Linear output;  // [vocabulary, width]
  HeadWeights head;
  OtherWeights others;
  std::vector<LayerWeights> layers;
  std::vector<float> rope_divisors;  // rotary frequency divisors from the file; may be empty
  uint64_t bytes = 0;                // total, as stored on the devices
  std::map<const Node*, std::string> names;  // of the file's tensors, by the nodes that hold them
  Norm encoder_norm;                         // of the encoder's result, where a decoder follows
};

// Calls use once for every tensor present.
void for_each_weight(const Weights& weights, const std::function<void(const Tensor&)>& use);
// Calls use once for every matrix of a product; some are empty.
void for_each_linear(const Weights& weights, const std::function<void(const Linear&)>& use);
void for_each_linear(Weights& weights, const std::function<void(Linear&)>& use);

// Loads tensors from a file. On the CPU, and for plain types on devices that read host memory in
// place, they are views of the memory-mapped file; otherwise they are uploaded in the device's
// layout.
class WeightLoader {
 public:
  // adapters may be null.
  WeightLoader(const GgufFile& file, const Config& config, const RequiredTensors& required,
               const Placement& placement, LoadCallback progress, const Adapters* adapters);

  const Config& config() const { return config_; }
  const GgufFile& file() const { return file_; }
  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

  // Throws kNotFound if the file has no such tensor, kCorruptFile if its shape differs. Adapters of
  // the tensor are added to it, which makes it f32.
  Tensor take(const std::string& name, const Shape& shape, const Device& device);
  Tensor take_if_there(const std::string& name, const Shape& shape, const Device& device);
  // The same in f32, whatever the file has: only products and lookups of rows read every type.
  Tensor take_numbers(const std::string& name, const Shape& shape, const Device& device);
  // A norm outside the layers: "output_norm" is output_norm.weight and output_norm.bias.
  Norm take_norm(const std::string& name, const Device& device, int64_t length = 0);
  // A matrix for a product: NAME.weight, and its factor NAME.scale if the file has one. Its
  // adapters stay apart.
  Linear take_linear(const std::string& name, const Shape& shape, const Device& device);

  // --- the current layer: "attn_q" is blk.N.attn_q.weight and attn_q.bias
  void begin_layer(int64_t layer);
  int64_t layer() const { return layer_; }
  bool has_in_layer(const std::string& name) const;
  Norm norm(const std::string& name, int64_t length = 0);  // 0: the width
  void norms(const NormNames& names, LayerWeights& layer);
  // q, k, v (or qkv), output, norms of q and k, sinks, gate; latent attention and an indexer if the
  // layer has them
  void attention(LayerWeights& layer, bool with_head_norms = true);
  void feed_forward(LayerWeights& layer);  // gate, up, down
  void experts(LayerWeights& layer);       // router, expert_... and shared_...
  // Experts if the layer has a router, whatever else the file has.
  void feed_forward_or_experts(LayerWeights& layer);
  Linear linear(const std::string& name, int64_t out, int64_t in, bool needs_bias = false);
  // A compressor of keys of this length: "NAME_kv", "NAME_gate", "NAME_ape" and "NAME_norm".
  CompressorWeights compressor(const std::string& name, int64_t length);
  Tensor take_in_layer(const std::string& name, const Shape& shape);
  // A tensor that the model does not need; with a matrix its factor.
  void leave_out(const std::string& name);
  // Puts a tensor into LayerWeights::others, in f32. keep_if_there: if the file has it.
  void keep(LayerWeights& layer, const std::string& name, const Shape& shape);
  void keep_if_there(LayerWeights& layer, const std::string& name, const Shape& shape);
  // Puts a matrix without a bias into LayerWeights::matrices.
  void keep_matrix(LayerWeights& layer, const std::string& name, const Shape& shape);
  const Device& device() const { return device_; }  // of the current layer

  uint64_t bytes() const { return bytes_; }
  const std::map<const Node*, std::string>& names() const { return names_; }
  // Throws kNotSupported if the file has a tensor that no part of the architecture took: the result
  // would be wrong without it.
  void check_all_taken() const;

 private:
  std::string in_layer(const std::string& name) const;
  Tensor take(bool is_required, const std::string& name, const Shape& shape, const Device& device);
  Tensor take_numbers(bool is_required, const std::string& name, const Shape& shape,
                      const Device& device);
  Tensor take_plain(const std::string& name, const Shape& shape, const Device& device,
                    bool as_numbers = false);
  Tensor placed(Tensor tensor, const Device& device);
  Tensor vector(bool is_required, const std::string& name, int64_t length);
  Norm head_norm(const std::string& name, int64_t heads);
  Linear expert_linear(const std::string& name, int64_t out, int64_t in);
  Tensor scale_of(const std::string& name, int64_t count, const Device& device);
  void latent(LayerWeights& layer);
  void indexer(LayerWeights& layer);

  const GgufFile& file_;
  const Config& config_;
  const RequiredTensors required_;
  const Placement& placement_;
  const Adapters* const adapters_;
  LoadCallback progress_;
  LoadProgress done_;
  uint64_t bytes_ = 0;
  std::set<std::string, std::less<>> taken_, adapted_;
  std::map<const Node*, std::string> names_;
  int64_t layer_ = 0;
  Device device_, expert_device_;
};

class Architecture;
Weights load_weights(const GgufFile& file, const Config& config, const Architecture& architecture,
                     const Placement& placement, const LoadCallback& progress,
                     const Adapters* adapters = nullptr);

}  // namespace prism::llm
