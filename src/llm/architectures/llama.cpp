// llama; also Mistral, Mixtral and SmolLM2, whose files use the same name.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Llama : public PreNormArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.pairing = RopePairing::adjacent;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_llama() { return std::make_unique<Llama>(); }

}  // namespace prism::llm
