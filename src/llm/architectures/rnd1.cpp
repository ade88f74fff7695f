// rnd1: qwen3moe without a causal mask.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Rnd1 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    set_expert_width(file, config, true);
    config.causal = false;
  }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_rnd1() { return std::make_unique<Rnd1>(); }

}  // namespace prism::llm
