// The weights of a model: tensors of the file by name, checked, each on its device.
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

// A matrix [out, in] and what is added to its product; bias may be empty.
struct Linear {
  Tensor weight, bias;
  explicit operator bool() const { return static_cast<bool>(weight); }
};
struct Norm {
  Tensor weight, bias;  // bias: of layer norms only
};

// Of one layer. What an architecture does not have stays empty.
struct LayerWeights {
  Norm attention_norm, attention_post_norm;
  Linear q, k, v, qkv, out;  // q, k and v, or one matrix of all three
  Tensor q_norm, k_norm;     // [head_dim]
  Tensor sinks;              // [heads]
  Norm feed_forward_norm, feed_forward_post_norm;
  Linear gate, up, down;  // without a gate: up alone (or both in one, gate first)
  Linear router;
  Linear expert_gate, expert_up, expert_down;  // [experts, out, in], biases [experts, out]
};

struct Weights {
  Tensor embedding;                           // [vocabulary, width]
  Tensor position_embedding, type_embedding;  // learned ones
  Norm embedding_norm, output_norm;
  Tensor output;  // [vocabulary, width]
  std::vector<LayerWeights> layers;
  std::vector<float> rope_divisors;  // that the file has for its rotary embedding; may be empty
  uint64_t bytes = 0;                // of all, as the devices store them
};

// Calls use for every tensor that there is, shared ones once.
void for_each_weight(const Weights& weights, const std::function<void(const Tensor&)>& use);

// Takes tensors out of a file. On the CPU they are the mapped file itself, and so are those of
// plain types on devices that read the host's memory in place; else they are uploaded, in the
// device's layout.
class WeightLoader {
 public:
  WeightLoader(const GgufFile& file, const Config& config, const Placement& placement,
               LoadCallback progress);

  const Config& config() const { return config_; }
  const GgufFile& file() const { return file_; }
  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

  // Throws kNotFound for a tensor the file does not have, kCorruptFile for another shape.
  Tensor take(const std::string& name, const Shape& shape, const Device& device);
  Tensor take_if_there(const std::string& name, const Shape& shape, const Device& device);

  // --- of the layer at hand: "attn_q" is blk.N.attn_q.weight, with attn_q.bias where there is one
  void begin_layer(int64_t layer);
  int64_t layer() const { return layer_; }
  bool has_in_layer(const std::string& name) const;
  Norm norm(const std::string& name);
  Norm norm_if_there(const std::string& name);
  Linear linear(const std::string& name, int64_t out, int64_t in);
  Tensor vector_if_there(const std::string& name, int64_t length);  // full name after "blk.N."
  // q, k, v (or qkv), output, and the norms of q and k and the sinks where the file has them.
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
