// mamba and mamba2: layers of one recurrent block each.
#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Mamba : public Architecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    set_ssm(file, config);
    config.ssm.norms = file.boolean_or(config_key(file, "ssm.dt_b_c_rms"), false);
    set_all_recurrent(config, mamba_states(config));
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    layer.attention_norm = from.norm("attn_norm");
    load_mamba(from, layer);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    return x + mamba(blocks, w, blocks.norm(x, w.attention_norm));
  }
};

class Mamba2 : public Architecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    set_ssm(file, config);
    set_all_recurrent(config, mamba2_states(config));
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    layer.attention_norm = from.norm("attn_norm");
    load_mamba2(from, layer);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    return x + mamba2(blocks, w, blocks.norm(x, w.attention_norm));
  }
};

}  // namespace

std::unique_ptr<Architecture> make_mamba() { return std::make_unique<Mamba>(); }
std::unique_ptr<Architecture> make_mamba2() { return std::make_unique<Mamba2>(); }

}  // namespace prism::llm
