// pockettts: the language model of Pocket TTS. Layer norms, rotary embedding, gelu without a gate.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class PocketTts : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
    config.pairing = RopePairing::adjacent;
  }
  RequiredTensors required_tensors() const override { return {.norm_bias = true, .gate = false}; }
};

}  // namespace

std::unique_ptr<Architecture> make_pockettts() { return std::make_unique<PocketTts>(); }

}  // namespace prism::llm
