// granite and granitemoe: llama with scale factors for embeddings, attention scores, residuals and
// logits; experts with a shared one.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Granite : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    const NumberRange from_zero{.zero = true};
    config.embedding_scale = config_number(file, "embedding_scale", 1);
    config.residual_scale = config_number(file, "residual_scale", 1);
    config.attention_scale = config_number(file, "attention.scale", 0, from_zero);
    const double divisor = config_number(file, "logit_scale", 1, from_zero);
    config.logit_scale = divisor != 0 ? 1 / divisor : 1;
    if (config.experts > 0) {
      config.expert_feed_forward = config.feed_forward;
      set_shared_width(file, config, 0);
    }
  }
};

}  // namespace

std::unique_ptr<Architecture> make_granite() { return std::make_unique<Granite>(); }

}  // namespace prism::llm
