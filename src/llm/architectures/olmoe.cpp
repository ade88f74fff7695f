// olmoe: experts whose weights are not renormalised, norms of whole rows of q and k.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Olmoe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    config.expert_weights_sum_to_one = false;
  }
  RequiredTensors required_tensors() const override {
    return {.head_norms = true, .no_qkv_bias = true};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_olmoe() { return std::make_unique<Olmoe>(); }

}  // namespace prism::llm
