// llama, with Mistral and SmolLM2, whose files say so too.
#include "llm/architecture.h"
#include "llm/blocks.h"
#include "ops/elementwise.h"

namespace prism::llm {

namespace {

class Llama : public Architecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    layer.attention_norm = from.norm("attn_norm");
    from.attention(layer);
    layer.feed_forward_norm = from.norm("ffn_norm");
    from.feed_forward(layer);
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, w.attention_norm));
    return seen + blocks.feed_forward(w, blocks.norm(seen, w.feed_forward_norm), Gating::silu);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_llama() { return std::make_unique<Llama>(); }

}  // namespace prism::llm
