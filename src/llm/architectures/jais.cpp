// jais: gpt2 with gated feed-forward layers and linear position biases.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Jais : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.norms = NormKind::layer;
    config.rope_dims = 0;
    config.max_bias = config_number(file, "attention.max_alibi_bias", 0, {.zero = true});
    config.attention_scale = 1 / static_cast<double>(config.head_dim);
  }
  RequiredTensors required_tensors() const override {
    return {.qkv_bias = true, .output_bias = true, .feed_forward_bias = true, .norm_bias = true};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_jais() { return std::make_unique<Jais>(); }

}  // namespace prism::llm
