// mistral3: llama whose queries are scaled by the position in long texts.
#include <cmath>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Mistral3 : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.temperature_scale =
        config_number(file, "attention.temperature_scale", 0, {.zero = true});
    config.temperature_length = static_cast<double>(config.rope_scaling.original_context);
    const double multiplier =
        config_number(file, "rope.scaling.yarn_log_multiplier", 0, {.zero = true});
    const double factor = config.rope_scaling.factor;
    if (config.rope_scaling.kind != RopeScaling::Kind::yarn || multiplier == 0 || factor <= 1)
      return;
    const auto grown = [&](double by) { return 0.1 * by * std::log(factor) + 1; };
    config.rope_magnitude =
        config_number(file, "rope.scaling.attn_factor", 1) * grown(1) / grown(multiplier);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_mistral3() { return std::make_unique<Mistral3>(); }

}  // namespace prism::llm
