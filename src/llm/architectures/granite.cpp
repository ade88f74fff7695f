// granite: llama with scale factors for embeddings, attention scores, residuals and logits.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Granite : public PreNormArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    const auto factor = [&](const char* name, double otherwise) {
      return file.number_or(config_key(file, name), otherwise);
    };
    config.embedding_scale = factor("embedding_scale", 1);
    config.residual_scale = factor("residual_scale", 1);
    config.attention_scale = factor("attention.scale", 0);
    const double divisor = factor("logit_scale", 1);
    config.logit_scale = divisor != 0 ? 1 / divisor : 1;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_granite() { return std::make_unique<Granite>(); }

}  // namespace prism::llm
