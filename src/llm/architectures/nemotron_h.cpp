// nemotron_h and nemotron_h_moe: each layer is one block: Mamba 2, attention without positions, or
// feed-forward without a gate (or experts, which may work on narrower rows).
#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"

namespace prism::llm {

namespace {

class NemotronH : public Architecture {
 public:
  RequiredTensors required_tensors() const override { return {.gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    config.rope_dims = 0;
    config.activation = Activation::relu_squared;
    set_ssm(file, config);
    if (config.experts > 0) {
      set_expert_width(file, config, true);
      set_expert_weights(file, config, ExpertScores::sigmoid);
      config.expert_scores = ExpertScores::sigmoid;
      set_shared_width(file, config, 0);
      config.expert_width = config_integer(file, "moe_latent_size", 0, 0, 1 << 20);
    }
    for (LayerConfig& each : config.each_layer) {
      if (each.feed_forward > 0)
        each.kv_heads = 0;
      else if (each.kv_heads == 0)
        each.states = mamba2_states(config);
    }
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const Config& config = from.config();
    layer.attention_norm = from.norm("attn_norm");
    if (is_recurrent(config, from.layer())) return load_mamba2(from, layer);
    if (config.at(from.layer()).feed_forward == 0) return from.attention(layer);
    if (config.experts == 0) return from.feed_forward(layer);
    from.experts(layer);
    if (config.expert_width == 0) return;
    from.keep_matrix(layer, kDown, {config.expert_width, config.width});
    from.keep_matrix(layer, kUp, {config.width, config.expert_width});
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor input = blocks.norm(x, w.attention_norm);
    if (is_recurrent(blocks.config(), blocks.layer())) return x + mamba2(blocks, w, input);
    if (w.up) return x + blocks.feed_forward(w, input);
    if (!w.router) return x + blocks.attention(w, input);
    if (!w.matrix(kDown)) return x + blocks.experts(w, input);
    LayerWeights routed = w, shared;
    routed.shared_up = {};
    shared.up = w.shared_up, shared.down = w.shared_down;
    const Tensor chosen = blocks.experts(routed, blocks.project(input, w.matrix(kDown)), input);
    return x + blocks.project(chosen, w.matrix(kUp)) + blocks.feed_forward(shared, input);
  }

 private:
  static constexpr const char *kDown = "ffn_latent_down", *kUp = "ffn_latent_up";
};

}  // namespace

std::unique_ptr<Architecture> make_nemotron_h() { return std::make_unique<NemotronH>(); }

}  // namespace prism::llm
