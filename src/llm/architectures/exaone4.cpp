// exaone4: norms after each block only; with windows, only windowed layers are rotated.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Exaone4 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    constexpr int64_t kLayersOf32B = 64;  // the only size with windows
    if (config.layers != kLayersOf32B) return;
    set_windows(file, config, 4096, 4);
    for (LayerConfig& each : config.each_layer) each.rotated = each.windowed;
  }
  NormNames norm_names() const override {
    return {.attention = "",
            .attention_post = "post_attention_norm",
            .feed_forward = "",
            .feed_forward_post = "post_ffw_norm"};
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_exaone4() { return std::make_unique<Exaone4>(); }

}  // namespace prism::llm
