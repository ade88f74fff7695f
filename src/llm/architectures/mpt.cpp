// mpt: gpt2 with linear position biases, most of it optional.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Mpt : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
    config.rope_dims = 0;
    config.qkv_clamp = config_number(file, "attention.clamp_kqv", 0, {.zero = true});
    config.max_bias = config_number(file, "attention.max_alibi_bias", 0, {.zero = true});
  }
  RequiredTensors required_tensors() const override { return {.gate = false}; }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.norms(norm_names(), layer);
    const bool has_norms = from.has_in_layer("attn_q_norm.weight");
    from.attention(layer, has_norms);
    if (!has_norms)
      for (const char* name : {"attn_q_norm.bias", "attn_k_norm.weight", "attn_k_norm.bias"})
        from.leave_out(name);
    from.feed_forward(layer);
    from.keep_if_there(layer, "ffn.act.scales", {from.config().feed_forward});
  }
};

}  // namespace

std::unique_ptr<Architecture> make_mpt() { return std::make_unique<Mpt>(); }

}  // namespace prism::llm
