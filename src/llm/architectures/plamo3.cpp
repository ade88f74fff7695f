// plamo3: fused matrices, norms before and after each block, seven of eight layers windowed.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Plamo3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    set_windows(file, config, 0, 8);
    config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
  }
  NormNames norm_names() const override {
    return {.attention_post = "post_attention_norm", .feed_forward_post = "post_ffw_norm"};
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_plamo3() { return std::make_unique<Plamo3>(); }

}  // namespace prism::llm
