// granite_swa: granite with windowed layers and attention sinks.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class GraniteSwa : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    const NumberRange from_zero{.zero = true};
    config.embedding_scale = config_number(file, "embedding_scale", 1);
    config.residual_scale = config_number(file, "residual_scale", 1);
    config.attention_scale = config_number(file, "attention.scale", 0, from_zero);
    config.logit_scale = 1 / config_number(file, "logit_scale", 1);
    set_windows(file, config, 0, 4);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_granite_swa() { return std::make_unique<GraniteSwa>(); }

}  // namespace prism::llm
