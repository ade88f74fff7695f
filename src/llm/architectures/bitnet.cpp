// bitnet: norms before the last matrix of each block.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class BitNet : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config&) const override {}
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    layer.attention_inner_norm = from.norm("attn_sub_norm");
    layer.feed_forward_inner_norm =
        from.norm("ffn_sub_norm", from.config().at(from.layer()).feed_forward);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_bitnet() { return std::make_unique<BitNet>(); }

}  // namespace prism::llm
