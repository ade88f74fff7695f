// qwen3moe, and the text part of qwen3vlmoe: qwen3 with experts.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Qwen3Moe : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config, true);
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen3moe() { return std::make_unique<Qwen3Moe>(); }

}  // namespace prism::llm
