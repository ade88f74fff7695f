// bert: an encoder that produces embeddings; learned positions, norms after each block.
#include "llm/architectures/architecture.h"
#include "llm/architectures/blocks.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

class Bert : public Architecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    config.causal = file.boolean_or(config_key(file, "attention.causal"), false);
    config.rope_dims = 0;
    config.norms = NormKind::layer;
    config.activation = Activation::gelu_erf;
    if (!file.has(config_key(file, "pooling_type"))) config.pooling = Pooling::mean;
  }

  RequiredTensors required_tensors() const override {
    return {.qkv_bias = true,
            .output_bias = true,
            .feed_forward_bias = true,
            .norm_bias = true,
            .gate = false};
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.attention(layer);
    layer.attention_post_norm = from.norm("attn_output_norm");
    from.feed_forward(layer);
    layer.feed_forward_post_norm = from.norm("layer_output_norm");
  }

  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    load_embeddings(from, placement, weights);
    // These throw: a file needs both.
    if (!weights.position_embedding) from.take("position_embd.weight", {}, placement.embedding);
    if (!weights.embedding_norm) from.take_norm("token_embd_norm", placement.embedding);
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = blocks.norm(x + blocks.attention(w, x), w.attention_post_norm);
    return blocks.norm(seen + blocks.feed_forward(w, seen), w.feed_forward_post_norm);
  }

  Tensor hidden(Blocks&, const Tensor& x) const override { return x; }

  Tensor logits(Blocks&, const Tensor&) const override {
    throw Error(ErrorCode::kNotSupported,
                "model: bert produces embeddings, not logits; use it for embeddings");
  }
};

}  // namespace

std::unique_ptr<Architecture> make_bert() { return std::make_unique<Bert>(); }

}  // namespace prism::llm
