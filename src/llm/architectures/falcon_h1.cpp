// falcon-h1: attention and Mamba 2 side by side in every layer.
#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class FalconH1 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.rope_divisors = false;
    set_ssm(file, config);
    for (LayerConfig& each : config.each_layer) each.states = mamba2_states(config);
  }
  RequiredTensors required_tensors() const override { return {.no_output_bias = true}; }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override {
    from.attention(layer);
    load_mamba2(from, layer);
  }
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    return blocks.attention(w, x) + mamba2(blocks, w, x);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_falcon_h1() { return std::make_unique<FalconH1>(); }

}  // namespace prism::llm
