// bloom: gpt2 with linear position biases and a norm of the embedding.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Bloom : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
    config.rope_dims = 0;
    config.max_bias = 8;
  }
  RequiredTensors required_tensors() const override {
    return {.qkv_bias = true,
            .output_bias = true,
            .feed_forward_bias = true,
            .norm_bias = true,
            .gate = false};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_bloom() { return std::make_unique<Bloom>(); }

}  // namespace prism::llm
