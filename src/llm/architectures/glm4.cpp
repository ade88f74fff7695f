// glm4: norms before and after each block, fused gate and up. Files of models that see images name
// two or more sections of the rotation and pair halves.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Glm4 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    config.pairing = RopePairing::adjacent;
    if (!file.has(config_key(file, "rope.dimension_sections"))) return;
    const std::vector<int64_t> sections =
        config_layers(file, "rope.dimension_sections", 2, 0, 1 << 14);
    if (sections[0] > 0 && sections[1] > 0) config.pairing = RopePairing::halves;
  }
  NormNames norm_names() const override {
    return {.attention_post = "post_attention_norm", .feed_forward_post = "post_ffw_norm"};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_glm4() { return std::make_unique<Glm4>(); }

}  // namespace prism::llm
