// exaone and pangu-embedded: llama whose rotation pairs halves.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Exaone : public TransformerArchitecture {
 public:
  void configure(const GgufFile&, Config& config) const override {
    config.rope_divisors = config.architecture == "exaone";
  }
};

}  // namespace

std::unique_ptr<Architecture> make_exaone() { return std::make_unique<Exaone>(); }

}  // namespace prism::llm
