// granite_swa: granite with windowed layers and attention sinks.
#include "llm/architectures/architecture.h"

namespace prism::llm {

namespace {

class GraniteSwa : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.pairing = RopePairing::adjacent;
    config.embedding_scale = config_factor(file, "embedding_scale", 1);
    config.residual_scale = config_factor(file, "residual_scale", 1);
    config.attention_scale = config_number(file, "attention.scale", 0, {.zero = true});
    config.logit_scale = 1 / config_factor(file, "logit_scale", 1);
    set_windows(file, config, 0, 4);
    if (config.experts > 0) set_shared_width(file, config, 0);
    const GgufValue* rotated = file.find(config_key(file, "attention.rope_pattern"));
    if (!rotated || !rotated->is_array()) return;
    const std::vector<int64_t> each =
        config_layers(file, "attention.rope_pattern", config.layers, 0, 1);
    for (size_t i = 0; i < each.size(); ++i) config.each_layer[i].rotated = each[i] != 0;
  }
};

}  // namespace

std::unique_ptr<Architecture> make_granite_swa() { return std::make_unique<GraniteSwa>(); }

}  // namespace prism::llm
