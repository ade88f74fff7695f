// phi2: attention and feed-forward side by side after one layer norm.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Phi2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
    config.parallel = true;
  }
  NormNames norm_names() const override { return {.feed_forward = ""}; }
  RequiredTensors required_tensors() const override {
    return {.output_bias = true, .feed_forward_bias = true, .norm_bias = true, .gate = false};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_phi2() { return std::make_unique<Phi2>(); }

}  // namespace prism::llm
