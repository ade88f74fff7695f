// cohere2moe: cohere2 with experts, whose sum and the shared expert are averaged.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Cohere2Moe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    require_experts(file, config);
    set_expert_width(file, config);
    leave_out_proposing_layers(file, config);
    if (!file.has(config_key(file, "attention.layer_norm_rms_epsilon")))
      config.norms = NormKind::layer;
    config.logit_scale = config_factor(file, "logit_scale", 1);
    set_windows(file, config, 4096, 4, true);
    set_leading_dense(file, config);
    for (LayerConfig& each : config.each_layer) each.rotated = each.windowed || !each.experts;
    set_expert_weights(file, config, ExpertScores::sigmoid);
    const int64_t shared = config_integer(file, "expert_shared_count", 0, 0, 1024);
    if (shared > 0) set_shared_width(file, config, shared * config.expert_feed_forward);
  }
  NormNames norm_names() const override { return {.feed_forward = ""}; }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor input = blocks.norm(x, w.attention_norm);
    Tensor inner = w.router ? blocks.experts(w, input) : blocks.feed_forward(w, input);
    if (w.shared_up) inner = inner * 0.5;
    return x + blocks.attention(w, input) + inner;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_cohere2moe() { return std::make_unique<Cohere2Moe>(); }

}  // namespace prism::llm
