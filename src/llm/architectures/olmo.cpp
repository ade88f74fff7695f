// olmo: layer norms without weights.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Olmo : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.norms = NormKind::layer;
    config.qkv_clamp = config_number(file, "attention.clamp_kqv", 0, {.zero = true});
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.attention(layer);
    from.feed_forward(layer);
  }
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    load_output(from, placement, weights);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, {}));
    return seen + blocks.feed_forward(w, blocks.norm(seen, {}));
  }
};

}  // namespace

std::unique_ptr<Architecture> make_olmo() { return std::make_unique<Olmo>(); }

}  // namespace prism::llm
