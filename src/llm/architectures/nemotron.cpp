// nemotron and jais2: layer norms, squared relu without a gate.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Nemotron : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::relu_squared;
  }
  RequiredTensors required_tensors() const override { return {.norm_bias = true, .gate = false}; }
};

}  // namespace

std::unique_ptr<Architecture> make_nemotron() { return std::make_unique<Nemotron>(); }

}  // namespace prism::llm
