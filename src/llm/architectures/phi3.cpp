// phi3: fused q, k and v, fused gate and up, separate rotary frequencies for long contexts.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Phi3 : public PreNormArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.window = file.integer_or(config_key(file, "attention.sliding_window"), 0);
    config.rope_magnitude = file.number_or(config_key(file, "rope.scaling.attn_factor"), 0);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_phi3() { return std::make_unique<Phi3>(); }

}  // namespace prism::llm
