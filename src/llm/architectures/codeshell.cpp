// codeshell: gpt2 with rotary embedding.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class CodeShell : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = Activation::gelu;
  }
  RequiredTensors required_tensors() const override {
    return {.output_bias = true, .feed_forward_bias = true, .norm_bias = true, .gate = false};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_codeshell() { return std::make_unique<CodeShell>(); }

}  // namespace prism::llm
