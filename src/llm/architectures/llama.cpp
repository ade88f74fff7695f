// llama; also Mistral, Mixtral, SmolLM2, InternLM2 and XVERSE, whose layers are the same.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Llama : public TransformerArchitecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_llama() { return std::make_unique<Llama>(); }

}  // namespace prism::llm
