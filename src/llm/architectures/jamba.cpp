// jamba: layers of Mamba or of attention without positions; experts in some of them.
#include <fmt/format.h>

#include "llm/architectures/recurrent.h"

namespace prism::llm {

namespace {

class Jamba : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.rope_dims = 0;
    set_ssm(file, config);
    set_states_of_headless(config, mamba_states(config));
    config.expert_weights_sum_to_one = false;
    for (int64_t i = 0; i < config.layers; ++i)
      config.each_layer[static_cast<size_t>(i)].experts =
          file.find_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
  }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override {
    is_recurrent(from.config(), from.layer()) ? load_mamba(from, layer) : from.attention(layer);
  }
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    return is_recurrent(blocks.config(), blocks.layer()) ? mamba(blocks, w, x)
                                                         : blocks.attention(w, x);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_jamba() { return std::make_unique<Jamba>(); }

}  // namespace prism::llm
