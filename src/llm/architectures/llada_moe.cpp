// llada-moe: experts whose weights are not renormalised, no causal mask.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class LladaMoe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config, true);
    config.causal = false;
    config.expert_weights_sum_to_one = false;
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_llada_moe() { return std::make_unique<LladaMoe>(); }

}  // namespace prism::llm
