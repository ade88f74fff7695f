// gemma3: gemma2 with norms of q and k instead of soft caps; five of six layers are windowed and
// use their own rotary base.
#include "llm/architectures/gemma.h"

namespace prism::llm {

namespace {

class Gemma3 : public GemmaArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    configure_gemma(config, 62);
    config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
    config.logit_soft_cap = config_number(file, "final_logit_softcapping", 0, {.zero = true});
    set_windows(file, config, 0, 6);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_gemma3() { return std::make_unique<Gemma3>(); }

}  // namespace prism::llm
