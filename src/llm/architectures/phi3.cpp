// phi3: fused q, k and v, fused gate and up, separate rotary frequencies for long contexts. phimoe:
// with experts. Windows that files state are checked and not used, as llama.cpp does it.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Phi3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    (void)config_integer(file, "attention.sliding_window", 0, 0, 1 << 30);
    config.rope_magnitude = config_number(file, "rope.scaling.attn_factor", 0, {.zero = true});
  }
};

}  // namespace

std::unique_ptr<Architecture> make_phi3() { return std::make_unique<Phi3>(); }

}  // namespace prism::llm
