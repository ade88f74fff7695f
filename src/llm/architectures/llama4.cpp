// llama4: llama in which three of four layers see chunks of the text and are rotated; the others
// are not rotated and see all of it. Every other layer, or each, has experts.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Llama4 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.rotates_before_norm = true;
    constexpr int64_t kExpertsOfMaverick = 128;
    config.plain_head_norms = config.experts != kExpertsOfMaverick;
    const std::string key = config_key(file, "attention.sliding_window");
    if (!file.has(key) || file.integer(key) != 0) {
      set_windows(file, config, 0, 4);
      config.window = 8192;  // whatever the file says
      config.chunked = true;
      config.local_rope_base = config_number(file, "rope.freq_base_swa", 0, {.most = 1e12});
      if (config.local_rope_base == config.rope_base) config.local_rope_base = 0;
      config.local_rope_scaling = config.rope_scaling;
      config.temperature_scale = 0.1;
      config.temperature_length = 8192;
      config.temperature_offset = 1;
      config.temperature_of_unrotated = true;
      leave_unrotated(config, 4);
    } else {
      leave_unrotated(config, config.layers);
    }
    require_experts(file, config);
    set_expert_width(file, config);
    config.expert_scores = ExpertScores::sigmoid;
    config.expert_weights_sum_to_one = false;
    config.weights_before_experts = true;
    config.shared_feed_forward = config.expert_feed_forward;
    const int64_t step = config_integer(file, "interleave_moe_layer_step", 0, 0, 4096);
    for (int64_t i = 0; i < config.layers; ++i)
      config.each_layer[static_cast<size_t>(i)].experts = step > 0 && (i + 1) % step == 0;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_llama4() { return std::make_unique<Llama4>(); }

}  // namespace prism::llm
