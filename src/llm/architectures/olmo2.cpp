// olmo2 and olmo3: norms after each block only, norms of whole rows of q and k.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Olmo2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    set_windows(file, config, 0, 4);
    config.local_rope_base =
        config_number(file, "rope.freq_base_swa", config.rope_base, {.most = 1e12});
    config.local_rope_magnitude = 1;
  }
  NormNames norm_names() const override {
    return {.attention = "",
            .attention_post = "post_attention_norm",
            .feed_forward = "",
            .feed_forward_post = "post_ffw_norm"};
  }
  RequiredTensors required_tensors() const override {
    return {.head_norms = true, .no_qkv_bias = true};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_olmo2() { return std::make_unique<Olmo2>(); }

}  // namespace prism::llm
