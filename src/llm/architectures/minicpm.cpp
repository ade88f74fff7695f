// minicpm: llama with scale factors, which older files leave out.
#include <cmath>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class MiniCpm : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.embedding_scale = config_factor(file, "embedding_scale", 12);
    config.residual_scale =
        config_factor(file, "residual_scale", 1.4 / std::sqrt(static_cast<double>(config.layers)));
    const double divisor =
        config_number(file, "logit_scale", 256.0 / static_cast<double>(config.width));
    config.logit_scale = 1 / divisor;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_minicpm() { return std::make_unique<MiniCpm>(); }

}  // namespace prism::llm
