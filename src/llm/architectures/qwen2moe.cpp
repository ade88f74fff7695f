// qwen2moe: qwen2 with experts whose weights are not renormalised, and a gated shared expert.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen2Moe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config, true);
    config.expert_weights_sum_to_one = false;
    set_shared_width(file, config, config.feed_forward);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen2moe() { return std::make_unique<Qwen2Moe>(); }

}  // namespace prism::llm
