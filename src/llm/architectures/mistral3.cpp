// mistral3: llama whose queries are scaled by the position in long texts.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class Mistral3 : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.attention_scale = config_number(file, "attention.scale", 0, {.zero = true});
    config.temperature_scale =
        config_number(file, "attention.temperature_scale", 0, {.zero = true});
    config.temperature_length = static_cast<double>(config.rope_scaling.original_context);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_mistral3() { return std::make_unique<Mistral3>(); }

}  // namespace prism::llm
