// orion: llama with layer norms.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Orion : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override { config.norms = NormKind::layer; }
  RequiredTensors required_tensors() const override { return {.norm_bias = true}; }
};

}  // namespace

std::unique_ptr<Architecture> make_orion() { return std::make_unique<Orion>(); }

}  // namespace prism::llm
