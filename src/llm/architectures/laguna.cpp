// laguna: attention gated by a softplus, windowed layers, experts after the first layers.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Laguna : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config);
    config.gate_is_softplus = true;
    set_windows(file, config, 0, 4, true);
    config.local_rope_base =
        config_number(file, "rope.freq_base_swa", config.rope_base, {.most = 1e12});
    config.local_rope_magnitude = 1;
    config.local_rope_dims =
        config_integer(file, "rope.dimension_count_swa", config.rope_dims, 2, config.head_dim) / 2 *
        2;
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::sigmoid);
    set_shared_width(
        file, config,
        config_integer(file, "expert_shared_count", 1, 0, 1024) * config.expert_feed_forward);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_laguna() { return std::make_unique<Laguna>(); }

}  // namespace prism::llm
