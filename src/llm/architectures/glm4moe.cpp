// glm4moe (GLM-4.5): experts after the first layers, a shared expert.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Glm4Moe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    require_experts(file, config);
    set_expert_width(file, config, true);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::sigmoid);
    set_shared_count(file, config);
  }
  NormNames norm_names() const override { return {.feed_forward = "post_attention_norm"}; }
};

}  // namespace

std::unique_ptr<Architecture> make_glm4moe() { return std::make_unique<Glm4Moe>(); }

}  // namespace prism::llm
