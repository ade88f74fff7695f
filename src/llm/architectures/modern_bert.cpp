// modern-bert: an encoder with norms before each block, gated feed-forward layers, and windows
// around each position in all but every third layer.
#include <fmt/format.h>

#include "llm/architectures/encoder.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

Activation activation_of(const GgufFile& file) {
  const std::string key = config_key(file, "hidden_activation");
  const std::string_view name = file.string_or(key, "gelu");
  if (name == "gelu" || name == "geglu") return Activation::gelu_erf;
  if (name == "silu" || name == "swish" || name == "swiglu") return Activation::silu;
  if (name == "relu" || name == "reglu") return Activation::relu;
  throw Error(ErrorCode::kNotSupported,
              fmt::format("model: {} is \"{}\"; supported are gelu, silu and relu", key, name));
}

class ModernBert : public EncoderArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.norms = NormKind::layer;
    config.activation = activation_of(file);
    config.local_rope_base = config_number(file, "rope.freq_base_swa", 1e4, {.most = 1e12});
    set_windows(file, config, 0, 3, true);
    set_encoder(file, config);
    config.head = {.pooling = Pooling::mean, .activation = HeadActivation::gelu, .softmax = false};
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    // The first layer reads the norm of the embeddings.
    if (from.layer() > 0 || from.has_in_layer("attn_norm.weight"))
      layer.attention_norm = from.norm("attn_norm");
    from.attention(layer);
    layer.feed_forward_norm = from.norm("ffn_norm");
    from.feed_forward(layer);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_modern_bert() { return std::make_unique<ModernBert>(); }

}  // namespace prism::llm
