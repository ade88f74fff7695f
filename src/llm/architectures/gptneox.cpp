// gptneox (Pythia): layer norms; attention and feed-forward side by side in most files.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class GptNeox : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
    config.parallel = file.boolean_or(config_key(file, "use_parallel_residual"), true);
  }
  RequiredTensors required_tensors() const override {
    return {.qkv_bias = true,
            .output_bias = true,
            .feed_forward_bias = true,
            .norm_bias = true,
            .gate = false};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_gptneox() { return std::make_unique<GptNeox>(); }

}  // namespace prism::llm
