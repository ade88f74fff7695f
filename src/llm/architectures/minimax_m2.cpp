// minimax-m2: norms of whole rows of q and k, experts by sigmoid.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class MiniMaxM2 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_scores(file, config, ExpertScores::sigmoid);
  }
  RequiredTensors required_tensors() const override {
    return {.head_norms = true, .no_qkv_bias = true};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_minimax_m2() { return std::make_unique<MiniMaxM2>(); }

}  // namespace prism::llm
