// afmoe (Trinity): gated attention, norms before and after each block, windowed layers.
#include <cmath>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Afmoe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.embedding_scale = std::sqrt(static_cast<double>(config.width));
    set_windows(file, config, 0, 4);
    if (file.has(config_key(file, "rope.freq_base_swa"))) {
      config.local_rope_base = config_number(file, "rope.freq_base_swa", 0, {.most = 1e12});
      config.local_rope_scaling = config.rope_scaling;
    }
    leave_unrotated(config, 4);
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::sigmoid);
    set_shared_count(file, config);
  }
  NormNames norm_names() const override {
    return {.attention_post = "post_attention_norm", .feed_forward_post = "post_ffw_norm"};
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_afmoe() { return std::make_unique<Afmoe>(); }

}  // namespace prism::llm
