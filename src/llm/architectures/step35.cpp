// step35: llama with gated heads, windows with another rotation, and experts.
#include <utility>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Step35 : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override {
    return {.shared_expert = false, .no_qkv_bias = true};
  }
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
    set_windows(file, config, 0, 1);
    set_windowed_heads(file, config);
    config.local_rope_dims =
        config_integer(file, "rope.dimension_count_swa", config.rope_dims, 2, config.head_dim);
    config.rope_dims /= 2;
    set_expert_width(file, config);
    set_expert_weights(file, config, ExpertScores::sigmoid);
    set_shared_width(file, config, 0);
    for (const auto& [name, limits] : {std::pair("swiglu_clamp_exp", &config.expert_limits),
                                       std::pair("swiglu_clamp_shexp", &config.inner_limits)})
      if (file.has(config_key(file, name))) *limits = config_numbers(file, name, config.layers);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.norms(norm_names(), layer);
    from.attention(layer);
    from.feed_forward_or_experts(layer);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_step35() { return std::make_unique<Step35>(); }

}  // namespace prism::llm
