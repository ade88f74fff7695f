// plm: latent attention and feed-forward layers without a gate.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Plm : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.activation = Activation::relu_squared;
    set_latent(file, config);
    have_no_experts(config);
  }
  RequiredTensors required_tensors() const override { return {.gate = false}; }
};

}  // namespace

std::unique_ptr<Architecture> make_plm() { return std::make_unique<Plm>(); }

}  // namespace prism::llm
