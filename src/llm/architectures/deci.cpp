// deci (Nemotron of NVIDIA): llama whose layers may lack attention or feed-forward.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Deci : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const Config& config = from.config();
    const LayerConfig& sizes = config.at(from.layer());
    if (sizes.heads > 0) {
      layer.attention_norm = from.norm("attn_norm");
      if (sizes.kv_heads > 0)
        from.attention(layer);
      else
        layer.out = from.linear("attn_output", config.width, config.width);
    }
    if (sizes.feed_forward == 0) return;
    layer.feed_forward_norm = from.norm("ffn_norm");
    from.feed_forward(layer);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const LayerConfig& sizes = blocks.config().at(blocks.layer());
    if (sizes.feed_forward == 0) return x;
    Tensor seen = x;
    if (sizes.heads > 0) {
      const Tensor input = blocks.norm(x, w.attention_norm);
      seen = x + (w.q || w.qkv ? blocks.attention(w, input) : blocks.project(input, w.out));
    }
    return seen + blocks.feed_forward(w, blocks.norm(seen, w.feed_forward_norm));
  }
};

}  // namespace

std::unique_ptr<Architecture> make_deci() { return std::make_unique<Deci>(); }

}  // namespace prism::llm
