// command-r: attention and feed-forward side by side after one layer norm; scaled logits.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class CommandR : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.norms = NormKind::layer;
    config.parallel = true;
    config.logit_scale = config_factor(file, "logit_scale", 1);
  }
  NormNames norm_names() const override { return {.feed_forward = ""}; }
};

}  // namespace

std::unique_ptr<Architecture> make_command_r() { return std::make_unique<CommandR>(); }

}  // namespace prism::llm
