// gemma3: gemma2 with norms of q and k instead of soft caps; five of six layers are windowed and
// use their own rotary base.
#include "llm/architectures/gemma.h"

namespace prism::llm {

namespace {

class Gemma3 : public GemmaArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    constexpr int64_t kLayersOf27B = 62;
    configure_gemma(config, kLayersOf27B);
    config.rope_base = file.number_or(config_key(file, "rope.freq_base"), 1e6);
    config.local_rope_base = file.number_or(config_key(file, "rope.freq_base_swa"), 1e4);
    config.logit_soft_cap = file.number_or(config_key(file, "final_logit_softcapping"), 0);
    config.window = file.integer_or(config_key(file, "attention.sliding_window"), 0);
    config.window_step = 6;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gemma3() { return std::make_unique<Gemma3>(); }

}  // namespace prism::llm
