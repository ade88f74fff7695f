// smallthinker: experts with relu, chosen by the input of the layer; windowed layers.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class SmallThinker : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config);
    config.activation = Activation::relu;
    set_expert_scores(file, config, ExpertScores::softmax);
    constexpr int64_t kPeriod = 4;
    if (config_integer(file, "attention.sliding_window", 0, 0, 1 << 30) == 0) return;
    set_windows(file, config, 0, kPeriod, true);
    config.window = 4096;  // whatever the file states
    set_windowed_rotation(file, config);
    for (int64_t i = 0; i < config.layers; i += kPeriod)
      config.each_layer[static_cast<size_t>(i)].rotated = false;
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + blocks.attention(w, blocks.norm(x, w.attention_norm));
    return seen + blocks.experts(w, blocks.norm(seen, w.feed_forward_norm), x);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_smallthinker() { return std::make_unique<SmallThinker>(); }

}  // namespace prism::llm
