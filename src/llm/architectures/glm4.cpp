// glm4: norms before and after each block, fused gate and up. Files of models that see images name
// sections of the rotation and pair halves.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Glm4 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    const std::string sections = config_key(file, "rope.dimension_sections");
    if (!file.has(sections)) config.pairing = RopePairing::adjacent;
  }
  NormNames norm_names() const override {
    return {.attention_post = "post_attention_norm", .feed_forward_post = "post_ffw_norm"};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_glm4() { return std::make_unique<Glm4>(); }

}  // namespace prism::llm
