// stablelm: layer norms; layers without a second norm have attention and feed-forward side by side.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class StableLm : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.norms = NormKind::layer;
    config.parallel = file.find_tensor("blk.0.ffn_norm.weight") == nullptr;
  }
  RequiredTensors required_tensors() const override { return {.norm_bias = true}; }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.norms({.feed_forward = from.config().parallel ? "" : "ffn_norm"}, layer);
    from.attention(layer);
    from.feed_forward(layer);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_stablelm() { return std::make_unique<StableLm>(); }

}  // namespace prism::llm
