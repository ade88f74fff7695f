// muse-glimmer: gated attention, normed embeddings, norms before and after each block; only
// windowed layers are rotated.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"

namespace prism::llm {

namespace {

class MuseGlimmer : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.logit_scale = config_number(file, "logit_scale", 1);
    config.logit_soft_cap = config_number(file, "final_logit_softcapping", 30, {.zero = true});
    config.post_norm_epsilon = 1e-8;
    set_windows(file, config, 4096, 4);
    set_windowed_rotation(file, config, false);
    for (LayerConfig& each : config.each_layer) each.rotated = each.windowed;
  }
  NormNames norm_names() const override {
    return {.attention_post = "post_attention_norm", .feed_forward_post = "post_ffw_norm"};
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
  Tensor embed(Blocks& blocks) const override {
    return blocks.norm(TransformerArchitecture::embed(blocks), {});
  }
};

}  // namespace

std::unique_ptr<Architecture> make_muse_glimmer() { return std::make_unique<MuseGlimmer>(); }

}  // namespace prism::llm
