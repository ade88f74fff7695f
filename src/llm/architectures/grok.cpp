// grok: soft caps, experts with gelu and a dense block beside them.
#include <numbers>

#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"

namespace prism::llm {

namespace {

class Grok : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config);
    config.activation = Activation::gelu;
    const NumberRange from_zero{.zero = true};
    config.logit_scale = config_number(file, "logit_scale", 0.5773502691896257);
    config.embedding_scale = config_factor(file, "embedding_scale", 78.38367176906169);
    config.attention_scale = config_number(file, "attention.output_scale", 0.08838834764831845);
    config.attention_soft_cap = config_number(file, "attn_logit_softcapping", 30, from_zero);
    config.logit_soft_cap = config_number(file, "final_logit_softcapping", 0, from_zero);
    // As published, in files that say so; others are computed as llama.cpp does it.
    if (file.has(config_key(file, "expert_weights_norm")))
      set_expert_weights(file, config, ExpertScores::softmax);
    config.rope_scaling.beta_fast = config_number(file, "rope.scaling.yarn_beta_fast", 8);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const bool is_old = from.has_in_layer("layer_output_norm.weight");
    from.norms({.attention_post = "attn_output_norm",
                .feed_forward_post = is_old ? "layer_output_norm" : "post_ffw_norm"},
               layer);
    from.attention(layer);
    from.experts(layer);
    if (from.has_in_layer("ffn_up.weight")) from.feed_forward(layer);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor attended = blocks.attention(w, blocks.norm(x, w.attention_norm));
    const Tensor seen = x + blocks.norm(attended, w.attention_post_norm);
    const Tensor input = blocks.norm(seen, w.feed_forward_norm);
    Tensor inner = blocks.config().expert_weights_sum_to_one
                       ? blocks.experts(w, input)
                       : blocks.routed(w, input, choose(blocks, w, input));
    if (w.up) inner = (inner + blocks.feed_forward(w, input)) * std::numbers::sqrt2 / 2.0;
    return seen + blocks.norm(inner, w.feed_forward_post_norm);
  }

 private:
  // The best of a softmax over all experts, whose scores have a soft cap.
  static Blocks::Chosen choose(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
    constexpr double kCap = 30;
    const Tensor scores = tanh(blocks.project(x, w.router) * (1 / kCap)) * kCap;
    const Ordered best = top_k(softmax(scores, -1), blocks.config().experts_used);
    return {best.indices, best.values};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_grok() { return std::make_unique<Grok>(); }

}  // namespace prism::llm
