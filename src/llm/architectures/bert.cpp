// bert: an encoder that produces embeddings; learned positions, norms after each block.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"
#include "prism/ops/quantise.h"

namespace prism::llm {

namespace {

class Bert : public Architecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.causal = file.boolean_or(config_key(file, "attention.causal"), false);
    config.rope_dims = 0;
    switch (file.integer_or(config_key(file, "pooling_type"), 1)) {
      case 0:
        config.pooling = Pooling::none;
        break;
      case 2:
        config.pooling = Pooling::first;
        break;
      case 3:
        config.pooling = Pooling::last;
        break;
      default:
        config.pooling = Pooling::mean;
    }
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.attention(layer);
    layer.attention_post_norm = from.norm("attn_output_norm");
    from.feed_forward(layer);
    layer.feed_forward_post_norm = from.norm("layer_output_norm");
  }

  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    const Config& config = from.config();
    const Device& device = placement.embedding;
    weights.position_embedding =
        from.take("position_embd.weight", {config.context, config.width}, device);
    if (const GgufTensor* types = from.file().find_tensor("token_types.weight"))
      weights.type_embedding = from.take("token_types.weight", types->shape, device);
    weights.embedding_norm = {from.take("token_embd_norm.weight", {config.width}, device),
                              from.take_if_there("token_embd_norm.bias", {config.width}, device)};
  }

  Tensor embed(Blocks& blocks) const override {
    const Weights& w = blocks.weights();
    const Device& device = w.embedding.device();
    Tensor x = Architecture::embed(blocks) +
               cast(gather_rows(w.position_embedding, blocks.positions(device)), DType::f32);
    // All tokens have token type 0.
    if (w.type_embedding) x = x + dense(w.type_embedding.slice(0, 0, 1));
    return blocks.layer_norm(x, w.embedding_norm);
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = blocks.layer_norm(x + blocks.attention(w, x), w.attention_post_norm);
    return blocks.layer_norm(seen + blocks.feed_forward(w, seen, Gating::gelu_alone),
                             w.feed_forward_post_norm);
  }

  Tensor hidden(Blocks&, const Tensor& x) const override { return x; }

  Tensor logits(Blocks&, const Tensor&) const override {
    throw Error(ErrorCode::kNotSupported,
                "model: bert produces embeddings, not logits; use it for embeddings");
  }

 private:
  static Tensor dense(const Tensor& rows) {
    return rows.type().is_block() ? dequantise(rows) : cast(rows, DType::f32);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_bert() { return std::make_unique<Bert>(); }

}  // namespace prism::llm
