// cohere2 (Command R7B): command-r with windowed layers; only these are rotated.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Cohere2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.norms = NormKind::layer;
    config.parallel = true;
    config.logit_scale = config_factor(file, "logit_scale", 1);
    set_windows(file, config, 4096, 4);
    for (LayerConfig& each : config.each_layer) each.rotated = each.windowed;
  }
  NormNames norm_names() const override { return {.feed_forward = ""}; }
};

}  // namespace

std::unique_ptr<Architecture> make_cohere2() { return std::make_unique<Cohere2>(); }

}  // namespace prism::llm
