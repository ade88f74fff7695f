// ernie4_5 and ernie4_5-moe: llama, with experts in every n-th layer after the first ones; and the
// text part of paddleocr, which rotates halves.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Ernie45 : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    if (config.architecture != "paddleocr") config.pairing = RopePairing::adjacent;
    if (config.architecture != "ernie4_5-moe") return have_no_experts(config);
    set_expert_width(file, config);
    set_leading_dense(file, config);
    const int64_t step = config_integer(file, "interleave_moe_layer_step", 1, 1, 4096);
    for (int64_t i = 0; i < config.layers; ++i)
      if ((i + 1) % step != 0) config.each_layer[static_cast<size_t>(i)].experts = false;
    set_shared_width(file, config, 0);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_ernie4_5() { return std::make_unique<Ernie45>(); }

}  // namespace prism::llm
