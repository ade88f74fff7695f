// bitnet: norms before the last matrix of each block.
#include <fmt/format.h>

#include "llm/architectures/architecture.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

// Files of other converters lack the key and mean a silu.
Activation activation_of(const GgufFile& file) {
  const std::string key = config_key(file, "hidden_activation");
  const std::string_view name = file.string_or(key, "silu");
  if (name == "silu") return Activation::silu;
  if (name == "relu2") return Activation::relu_squared;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("model: {} is \"{}\"; supported are silu and relu2", key, name));
}

class BitNet : public TransformerArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.activation = activation_of(file);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    TransformerArchitecture::load_layer(from, layer);
    layer.attention_inner_norm = from.norm("attn_sub_norm");
    layer.feed_forward_inner_norm =
        from.norm("ffn_sub_norm", from.config().at(from.layer()).feed_forward);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_bitnet() { return std::make_unique<BitNet>(); }

}  // namespace prism::llm
