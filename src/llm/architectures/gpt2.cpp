// gpt2 and starcoder: layer norms, learned positions, no rotation. bloom: linear position biases
// and a norm of the embedding in their place.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Gpt2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
    config.rope_dims = 0;
    if (config.architecture == "bloom") config.max_bias = 8;
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

std::unique_ptr<Architecture> make_gpt2() { return std::make_unique<Gpt2>(); }

}  // namespace prism::llm
