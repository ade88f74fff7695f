// talkie: llama with norms without weights, to whose layers the embedding is added again.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Talkie : public Architecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.rotates_before_norm = true;
    config.plain_head_norms = true;
    config.logit_scale = config_number(file, "logit_scale", 1);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.attention(layer, false);
    const int64_t heads = from.config().at(from.layer()).heads;
    from.keep(layer, "attn_q_norm.weight", {heads, 1});
    layer.q_norm.weight = layer.other("attn_q_norm.weight");
    from.feed_forward(layer);
    from.keep(layer, "layer_output_scale.weight", {1});
  }
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    load_output(from, placement, weights);
  }
  Tensor embed(Blocks& blocks) const override {
    const Tensor x = blocks.norm(Architecture::embed(blocks), Norm());
    blocks.set_layer_inputs(x);
    return x;
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, Norm()));
    const Tensor result = seen + blocks.feed_forward(w, blocks.norm(seen, Norm()));
    return result + blocks.layer_inputs().to(x.device()) * w.other("layer_output_scale.weight");
  }
};

}  // namespace

std::unique_ptr<Architecture> make_talkie() { return std::make_unique<Talkie>(); }

}  // namespace prism::llm
