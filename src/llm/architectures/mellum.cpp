// mellum: qwen3moe with windowed layers.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Mellum : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config, true);
    set_windows(file, config, 0, 4);
    config.local_rope_base =
        config_number(file, "rope.freq_base_swa", config.rope_base, {.most = 1e12});
    config.local_rope_magnitude = 1;
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_mellum() { return std::make_unique<Mellum>(); }

}  // namespace prism::llm
