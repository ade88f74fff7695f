// gemma2: alternating windowed layers, soft caps, norms before and after each block.
#include "llm/architectures/gemma.h"

namespace prism::llm {

namespace {

class Gemma2 : public GemmaArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    configure_gemma(config, 46);
    const NumberRange from_zero{.zero = true};  // 0: no cap
    config.attention_soft_cap = config_number(file, "attn_logit_softcapping", 50, from_zero);
    config.logit_soft_cap = config_number(file, "final_logit_softcapping", 30, from_zero);
    set_windows(file, config, 4096, 2);
    set_windowed_rotation(file, config);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gemma2() { return std::make_unique<Gemma2>(); }

}  // namespace prism::llm
