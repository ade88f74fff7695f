// bert and its descendants, encoders with norms after each block: nomic-bert and jina-bert-v3
// rotate positions, jina-bert-v2 has linear biases, nomic-bert-moe has experts in some layers.
#include "llm/architectures/blocks.h"
#include "llm/architectures/encoder.h"
#include "prism/ops/elementwise.h"

namespace prism::llm {

namespace {

struct BertKind {
  bool positions = false;  // learned
  bool rotated = false;
  double max_bias = 0;
  bool bias = false;  // of all matrices
  bool gate = false;
  Activation activation = Activation::gelu_erf;
};

class Bert : public EncoderArchitecture {
 public:
  explicit Bert(const BertKind& kind) : kind_(kind) {}

  void configure(const GgufFile& file, Config& config) const override {
    set_encoder(file, config);
    if (!kind_.rotated) config.rope_dims = 0;
    config.norms = NormKind::layer;
    config.activation = kind_.activation;
    config.max_bias = kind_.max_bias;
    // DistilBERT's, in files of Prism; BERT's is tanh.
    if (file.string_or(config_key(file, "classifier.activation"), "tanh") == "relu")
      config.head.activation = HeadActivation::relu;
    const int64_t period = config_integer(file, "moe_every_n_layers", 0, 0, 4096);
    for (size_t i = 0; i < config.each_layer.size(); ++i)
      config.each_layer[i].experts =
          period > 0 && static_cast<int64_t>(i) % period == 1 && config.experts > 0;
    config.expert_weights_sum_to_one = false;
  }

  RequiredTensors required_tensors() const override {
    return {.qkv_bias = kind_.bias,
            .output_bias = kind_.bias,
            .feed_forward_bias = kind_.bias,
            .norm_bias = true,
            .gate = kind_.gate};
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    from.attention(layer);
    layer.attention_post_norm = from.norm("attn_output_norm");
    // The models for code add the layer's input once more and have a norm of that.
    if (from.has_in_layer("attn_norm_2.weight")) layer.feed_forward_norm = from.norm("attn_norm_2");
    if (from.config().at(from.layer()).experts) {
      from.experts(layer);
      // Of the experts' sum. Files of other converters leave it out.
      from.keep_if_there(layer, "ffn_down.bias", {from.config().width});
    } else {
      from.feed_forward(layer);
    }
    layer.feed_forward_post_norm = from.norm("layer_output_norm");
  }

  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    load_embeddings(from, placement, weights);
    // These throw: a file needs them.
    if (kind_.positions && !weights.position_embedding)
      from.take("position_embd.weight", {}, placement.embedding);
    if (!weights.embedding_norm) from.take_norm("token_embd_norm", placement.embedding);
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    Tensor seen = blocks.norm(x + blocks.attention(w, x), w.attention_post_norm);
    if (w.feed_forward_norm) seen = blocks.norm(seen + x, w.feed_forward_norm);
    Tensor inner = w.router ? blocks.experts(w, seen) : blocks.feed_forward(w, seen);
    if (const Tensor bias = w.other("ffn_down.bias")) inner = inner + bias;
    return blocks.norm(seen + inner, w.feed_forward_post_norm);
  }

 private:
  BertKind kind_;
};

std::unique_ptr<Architecture> make(const BertKind& kind) { return std::make_unique<Bert>(kind); }

}  // namespace

std::unique_ptr<Architecture> make_bert() { return make({.positions = true, .bias = true}); }
std::unique_ptr<Architecture> make_nomic_bert() {
  return make({.rotated = true, .gate = true, .activation = Activation::silu});
}
std::unique_ptr<Architecture> make_nomic_bert_moe() { return make({.rotated = true}); }
std::unique_ptr<Architecture> make_jina_bert_v2() { return make({.max_bias = 8, .gate = true}); }
std::unique_ptr<Architecture> make_jina_bert_v3() { return make({.rotated = true}); }

}  // namespace prism::llm
