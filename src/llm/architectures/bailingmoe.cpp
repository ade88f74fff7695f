// bailingmoe (Ling): llama with experts and a shared expert; scores are scaled by the rotated part
// of a head.
#include <cmath>

#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class BailingMoe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    require_experts(file, config);
    set_expert_width(file, config);
    set_expert_weights(file, config, ExpertScores::softmax);
    config.expert_scores = ExpertScores::softmax;
    set_shared_count(file, config);
    config.attention_scale = 1 / std::sqrt(static_cast<double>(config.rope_dims));
  }
};

}  // namespace

std::unique_ptr<Architecture> make_bailingmoe() { return std::make_unique<BailingMoe>(); }

}  // namespace prism::llm
