// llada: llama without a causal mask; text is filled in, not continued.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Llada : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.causal = false;
    config.rope_divisors = false;
  }
  RequiredTensors required_tensors() const override {
    return {.no_output_bias = true, .no_feed_forward_bias = true};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_llada() { return std::make_unique<Llada>(); }

}  // namespace prism::llm
