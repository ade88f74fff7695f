// smollm3: llama without rotary embedding in every fourth layer.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class SmolLm3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    leave_unrotated(config, 4);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_smollm3() { return std::make_unique<SmolLm3>(); }

}  // namespace prism::llm
