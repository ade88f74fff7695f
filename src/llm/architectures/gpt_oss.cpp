// gpt-oss: alternating windowed layers, attention sinks, experts with biases.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class GptOss : public Architecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.window = file.integer(config_key(file, "attention.sliding_window"));
    config.window_step = 2;
    config.rope_scaling.round_bounds = false;
    if (config.experts == 0) (void)file.integer(config_key(file, "expert_count"));  // throws
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    layer.attention_norm = from.norm("attn_norm");
    from.attention(layer);
    layer.feed_forward_norm = from.norm("post_attention_norm");
    from.experts(layer);
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, w.attention_norm));
    return seen + blocks.experts(w, blocks.norm(seen, w.feed_forward_norm), Gating::silu_clamped);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gpt_oss() { return std::make_unique<GptOss>(); }

}  // namespace prism::llm
