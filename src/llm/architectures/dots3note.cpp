// dots3note: latent attention with gated heads; windowed layers have sizes of their own, and an
// indexer chooses the keys of the others.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Dots3Note : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    leave_out_proposing_layers(file, config);
    set_latent_heads(file, config);
    set_latent(file, config);
    set_windows(file, config, 0, 1);
    config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
    config.local_rope_scaling = config.rope_scaling;
    set_indexer(file, config);
    constexpr int64_t kMost = 1 << 16;
    for (LayerConfig& each : config.each_layer) {
      if (!each.windowed) continue;
      each.indexer = 0;
      each.chosen = false;
      each.latent = config_integer(file, "attention.kv_lora_rank_swa", each.latent, 1, kMost);
      each.head_dim = config_integer(file, "attention.key_length_mla_swa", each.head_dim,
                                     config.rope_dims + 1, kMost);
      each.value_dim =
          config_integer(file, "attention.value_length_mla_swa", each.value_dim, 1, kMost);
    }
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::softmax);
    set_shared_count(file, config);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    layer.k_norm = from.norm("attn_k_norm", from.config().rope_dims);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_dots3note() { return std::make_unique<Dots3Note>(); }

}  // namespace prism::llm
