// mimo2: llama with shorter values, sinks, and windows with a rotation of their own.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Mimo2 : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.no_qkv_bias = true}; }
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
    set_windows(file, config, 0, 1);
    set_expert_width(file, config);
    config.expert_scores = ExpertScores::sigmoid;
    config.attention_result_scale = config_factor(file, "attention.value_scale", 1);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.norms(norm_names(), layer);
    from.attention(layer);
    from.feed_forward_or_experts(layer);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_mimo2() { return std::make_unique<Mimo2>(); }

}  // namespace prism::llm
