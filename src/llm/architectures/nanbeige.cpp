// nanbeige: llama; models that run their layers several times are refused.
#include "llm/architectures/architecture.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

class Nanbeige : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.attention_scale = config_number(file, "attention.scale", 0, {.zero = true});
    if (config_integer(file, "num_loops", 1, 0, 64) > 1)
      throw Error(ErrorCode::kNotSupported,
                  "model: nanbeige.num_loops is above 1, which Prism does not know yet");
  }
};

}  // namespace

std::unique_ptr<Architecture> make_nanbeige() { return std::make_unique<Nanbeige>(); }

}  // namespace prism::llm
