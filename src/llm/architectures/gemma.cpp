// gemma: scaled embeddings and gelu; and what gemma2 and gemma3 share.
#include <cmath>

#include "llm/architectures/gemma.h"

namespace prism::llm {

namespace {

class Gemma : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.activation = Activation::gelu;
    config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  }
};

}  // namespace

void GemmaArchitecture::configure_gemma(Config& config, int64_t layers_of_27b) {
  config.activation = Activation::gelu;
  config.embedding_scale = std::sqrt(static_cast<double>(config.width));
  const int64_t scaled_by =
      config.layers == layers_of_27b ? config.width / config.heads : config.head_dim;
  config.attention_scale = 1 / std::sqrt(static_cast<double>(scaled_by));
}

void GemmaArchitecture::configure_unscaled(const GgufFile& file, Config& config) {
  configure_gemma(config, -1);
  config.attention_scale = 1;
  config.value_norms = true;
  config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
}

std::unique_ptr<Architecture> make_gemma() { return std::make_unique<Gemma>(); }

}  // namespace prism::llm
