// gemma2: alternating windowed layers, soft caps, norms before and after each block.
#include "llm/architectures/gemma.h"

namespace prism::llm {

namespace {

class Gemma2 : public GemmaArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    constexpr int64_t kLayersOf27B = 46;
    configure_gemma(config, kLayersOf27B);
    config.attention_soft_cap = file.number_or(config_key(file, "attn_logit_softcapping"), 50);
    config.logit_soft_cap = file.number_or(config_key(file, "final_logit_softcapping"), 30);
    config.window = file.integer_or(config_key(file, "attention.sliding_window"), 4096);
    config.window_step = 2;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gemma2() { return std::make_unique<Gemma2>(); }

}  // namespace prism::llm
