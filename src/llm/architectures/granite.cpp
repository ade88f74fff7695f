// granite, granitemoe and granitehybrid: llama with scale factors for embeddings, attention scores,
// residuals and logits; experts with a shared one; layers of Mamba 2.
#include "llm/architectures/recurrent.h"

namespace prism::llm {

namespace {

class Granite : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    const NumberRange from_zero{.zero = true};
    config.embedding_scale = config_number(file, "embedding_scale", 1);
    config.residual_scale = config_number(file, "residual_scale", 1);
    config.attention_scale = config_number(file, "attention.scale", 0, from_zero);
    const double divisor = config_number(file, "logit_scale", 1, from_zero);
    config.logit_scale = divisor != 0 ? 1 / divisor : 1;
    if (!file.boolean_or(config_key(file, "rope.scaling.finetuned"), true)) config.rope_dims = 0;
    if (config.experts > 0) {
      config.expert_feed_forward = config.feed_forward;
      set_shared_width(file, config, 0);
    }
  }
};

class GraniteHybrid : public Granite {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    Granite::configure(file, config);
    set_ssm(file, config);
    set_states_of_headless(config, mamba2_states(config));
  }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override {
    is_recurrent(from.config(), from.layer()) ? load_mamba2(from, layer) : from.attention(layer);
  }
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    return is_recurrent(blocks.config(), blocks.layer()) ? mamba2(blocks, w, x)
                                                         : blocks.attention(w, x);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_granitehybrid() { return std::make_unique<GraniteHybrid>(); }
std::unique_ptr<Architecture> make_granite() { return std::make_unique<Granite>(); }

}  // namespace prism::llm
