// arcee: llama with a squared relu in place of the gate.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Arcee : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.activation = Activation::relu_squared;
  }
  RequiredTensors required_tensors() const override { return {.gate = false}; }
};

}  // namespace

std::unique_ptr<Architecture> make_arcee() { return std::make_unique<Arcee>(); }

}  // namespace prism::llm
