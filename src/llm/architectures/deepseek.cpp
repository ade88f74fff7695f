// deepseek (the first): llama with experts after the first layers, and a shared expert; and the
// text part of deepseek2-ocr, which rotates halves.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class DeepSeek : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    require_experts(file, config);
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::softmax);
    config.expert_scores = ExpertScores::softmax;
    config.expert_weights_sum_to_one = false;
    set_shared_count(file, config);
  }
};

class DeepSeek2Ocr : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.rope_base = 10000;  // whatever the file states
    config.rope_dims = config.head_dim;
    config.rope_scaling = {};
    config.rope_magnitude = 0;
    require_experts(file, config);
    set_expert_width(file, config);
    set_leading_dense(file, config);
    set_expert_weights(file, config, ExpertScores::softmax);
    set_shared_count(file, config);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_deepseek2_ocr() { return std::make_unique<DeepSeek2Ocr>(); }
std::unique_ptr<Architecture> make_deepseek() { return std::make_unique<DeepSeek>(); }

}  // namespace prism::llm
