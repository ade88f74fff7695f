// falcon: attention and feed-forward side by side; larger models have a norm for each.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Falcon : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
    config.parallel = true;
  }
  RequiredTensors required_tensors() const override { return {.norm_bias = true, .gate = false}; }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const bool has_two = from.has_in_layer("attn_norm_2.weight");
    layer.attention_norm = from.norm(has_two ? "attn_norm_2" : "attn_norm");
    if (has_two) layer.feed_forward_norm = from.norm("attn_norm");
    from.attention(layer);
    from.feed_forward(layer);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_falcon() { return std::make_unique<Falcon>(); }

}  // namespace prism::llm
