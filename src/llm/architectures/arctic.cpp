// arctic: llama with experts beside each layer, which see the input of the layer.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Arctic : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    require_experts(file, config);
    for (LayerConfig& each : config.each_layer) each.feed_forward = config.width;
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    layer.expert_norm = from.norm("ffn_norm_exps");
    from.feed_forward(layer);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, w.attention_norm));
    const Tensor dense = seen + blocks.feed_forward(w, blocks.norm(seen, w.feed_forward_norm));
    return dense + blocks.experts(w, blocks.norm(x, w.expert_norm));
  }
};

}  // namespace

std::unique_ptr<Architecture> make_arctic() { return std::make_unique<Arctic>(); }

}  // namespace prism::llm
