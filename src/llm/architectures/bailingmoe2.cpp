// bailingmoe2 (Ling 2) and dots1: norms of q and k, experts after the first layers, a shared
// expert.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class BailingMoe2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    const bool is_dots = config.architecture == "dots1";
    if (!is_dots) leave_out_proposing_layers(file, config);
    require_experts(file, config);
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::softmax);
    if (is_dots) return set_shared_count(file, config);
    set_shared_width(file, config, config.expert_feed_forward);
    config.shared_feed_forward *= config_integer(file, "expert_shared_count", 1, 0, 1024);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_bailingmoe2() { return std::make_unique<BailingMoe2>(); }

}  // namespace prism::llm
