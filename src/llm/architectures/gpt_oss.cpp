// gpt-oss: alternating windowed layers, attention sinks, experts with biases.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class GptOss : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    (void)file.integer(config_key(file, "attention.sliding_window"));  // throws if it is missing
    set_windows(file, config, 1, 2);
    config.rope_scaling.round_bounds = false;
    set_windowed_rotation(file, config);
    config.activation = Activation::silu_clamped;
    require_experts(file, config);
    set_expert_width(file, config);
    config.expert_scores = ExpertScores::softmax_of_chosen;
  }
  NormNames norm_names() const override { return {.feed_forward = "post_attention_norm"}; }
  RequiredTensors required_tensors() const override {
    return {.output_bias = true, .sinks = true, .feed_forward_bias = true};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gpt_oss() { return std::make_unique<GptOss>(); }

}  // namespace prism::llm
