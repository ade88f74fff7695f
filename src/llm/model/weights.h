// The weights of a model: tensors looked up by name, checked and placed on their devices.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "llm/model/config.h"
#include "prism/llm/gguf.h"
#include "prism/llm/load_progress.h"
#include "prism/llm/placement.h"
#include "prism/tensor.h"

namespace prism::llm {

// A matrix [out, in] with an optional bias.
struct Linear {
  Tensor weight, bias;
  explicit operator bool() const { return static_cast<bool>(weight); }
};
struct Norm {
  Tensor weight, bias;  // only layer norms have a bias
};

// The weights of one layer. Members that an architecture does not have stay empty.
struct LayerWeights {
  Norm attention_norm, attention_post_norm;
  Linear q, k, v, qkv, out;  // separate q, k and v, or one fused matrix
  Tensor q_norm, k_norm;     // [head_dim]
  Tensor sinks;              // [heads]
  Norm feed_forward_norm, feed_forward_post_norm;
  Linear gate, up, down;  // without a gate: up alone (or both fused, gate first)
  Linear router;
  Linear expert_gate, expert_up, expert_down;  // [experts, out, in], biases [experts, out]
};

struct Weights {
  Tensor embedding;                           // [vocabulary, width]
  Tensor position_embedding, type_embedding;  // learned embeddings
  Norm embedding_norm, output_norm;
  Tensor output;  // [vocabulary, width]
  std::vector<LayerWeights> layers;
  std::vector<float> rope_divisors;  // rotary frequency divisors from the file; may be empty
  uint64_t bytes = 0;                // total, as stored on the devices
};

// Calls use once for every tensor present.
void for_each_weight(const Weights& weights, const std::function<void(const Tensor&)>& use);

// Loads tensors from a file. On the CPU, and for plain types on devices that read host memory in
// place, they are views of the memory-mapped file; otherwise they are uploaded in the device's
// layout.
class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, const Config& config, const Placement& placement,
               LoadCallback progress);

  const Config& config() const { return config_; }
  const GgufFile& file() const { return file_; }
  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

  // Throws kNotFound if the file has no such tensor, kCorruptFile if its shape differs.
  Tensor take(const std::string& name, const Shape& shape, const Device& device);
  Tensor take_if_there(const std::string& name, const Shape& shape, const Device& device);

  // --- the current layer: "attn_q" is blk.N.attn_q.weight, plus attn_q.bias if present
  void begin_layer(int64_t layer);
  int64_t layer() const { return layer_; }
  bool has_in_layer(const std::string& name) const;
  Norm norm(const std::string& name);
  Norm norm_if_there(const std::string& name);
  Linear linear(const std::string& name, int64_t out, int64_t in);
  Tensor vector_if_there(const std::string& name, int64_t length);  // full name after "blk.N."
  // q, k, v (or qkv), output; the norms of q and k and the sinks if the file has them.
  void attention(LayerWeights& layer);
  void feed_forward(LayerWeights& layer);  // gate, up, down
  void experts(LayerWeights& layer);       // router and expert_...

  uint64_t bytes() const { return bytes_; }

 private:
  std::string in_layer(const std::string& name) const;
  Linear expert_linear(const std::string& name, int64_t out, int64_t in);

  const GgufFile& file_;
  const Config& config_;
  const Placement& placement_;
  LoadCallback progress_;
  LoadProgress done_;
  uint64_t bytes_ = 0;
  int64_t layer_ = 0;
  Device device_, expert_device_;
};

class Architecture;
Weights load_weights(const GgufFile& file, const Config& config, const Architecture& architecture,
                     const Placement& placement, const LoadCallback& progress);

}  // namespace prism::llm
