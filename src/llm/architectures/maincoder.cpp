// maincoder: llama with norms of q and k after the rotation.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Maincoder : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.rotates_before_norm = true;
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_maincoder() { return std::make_unique<Maincoder>(); }

}  // namespace prism::llm
