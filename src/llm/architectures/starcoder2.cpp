// starcoder2: layer norms, rotary embedding, gelu without a gate.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class StarCoder2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
  }
  RequiredTensors required_tensors() const override {
    return {.output_bias = true, .feed_forward_bias = true, .norm_bias = true, .gate = false};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_starcoder2() { return std::make_unique<StarCoder2>(); }

}  // namespace prism::llm
