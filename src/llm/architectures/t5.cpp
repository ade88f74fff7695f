// t5: an encoder and a decoder with biases of distances in place of positions; t5encoder: the first
// half alone, for embeddings.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "llm/architectures/blocks.h"
#include "llm/architectures/encoder.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/index.h"

namespace prism::llm {

namespace {

// The bucket of a distance from a query to a key. Half of the buckets have one distance each, the
// others grow with its logarithm up to kFarthest. Both directions have half of them, or, in a
// decoder, the past has all.
int32_t bucket_of(int64_t distance, int64_t buckets, bool both_ways) {
  int64_t first = 0;
  if (both_ways) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return static_cast<int32_t>(first + distance);
  // In f32, as models are trained: rounding decides at the limits of buckets.
  const float steps = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                      std::log(static_cast<float>(kFarthest) / static_cast<float>(exact)) *
                      static_cast<float>(buckets - exact);
  return static_cast<int32_t>(first + std::min(exact + static_cast<int64_t>(steps), buckets - 1));
}

class T5Encoder : public EncoderArchitecture {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    set_encoder(file, config);
    config.encoder_layers = config.layers;
    set_layers(file, config);
  }

  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const Config& config = from.config();
    const LayerConfig& sizes = config.at(from.layer());
    const int64_t width = config.width, wide = sizes.feed_forward;
    const auto heads = [&](const std::string& prefix, Linear& q, Linear& k, Linear& v,
                           Linear& out) {
      q = from.linear(prefix + "attn_q", sizes.heads * sizes.head_dim, width);
      k = from.linear(prefix + "attn_k", sizes.kv_heads * sizes.head_dim, width);
      v = from.linear(prefix + "attn_v", sizes.kv_heads * sizes.value_dim, width);
      out = from.linear(prefix + "attn_o", width, sizes.heads * sizes.value_dim);
    };
    const bool encodes = config.is_encoder(from.layer());
    from.norms({}, layer);
    heads("", layer.q, layer.k, layer.v, layer.out);
    const bool is_first = from.layer() == 0 || from.layer() == config.encoder_layers;
    if (is_first || from.has_in_layer("attn_rel_b.weight"))
      layer.distance_bias = biases(from, layer, encodes);
    if (!encodes) {
      layer.cross.norm = from.norm("cross_attn_norm");
      heads("cross_", layer.cross.q, layer.cross.k, layer.cross.v, layer.cross.out);
      from.leave_out("cross_attn_rel_b.weight");  // the published models do not use it
    }
    if (from.has_in_layer("ffn_gate.weight")) layer.gate = from.linear("ffn_gate", wide, width);
    layer.up = from.linear("ffn_up", wide, width);
    layer.down = from.linear("ffn_down", width, wide);
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    Tensor seen = x + blocks.attention(w, blocks.norm(x, w.attention_norm));
    if (w.cross) seen = seen + blocks.cross_attention(w, seen);
    return seen + blocks.feed_forward(w, blocks.norm(seen, w.feed_forward_norm));
  }

 protected:
  static void set_layers(const GgufFile& file, Config& config) {
    have_no_experts(config);
    config.rope_dims = 0;
    config.attention_scale = 1;
    // The first version has a ReLU, later ones a gate.
    config.activation =
        file.find_tensor("enc.blk.0.ffn_gate.weight") ? Activation::gelu : Activation::relu;
    // With more, those of single distances would reach kFarthest.
    config.bias_buckets = config_integer(file, "attention.relative_buckets_count", 32, 4, 254);
  }

 private:
  // The biases of all distances, from those of the buckets.
  static Tensor biases(WeightLoader& from, LayerWeights& layer, bool both_ways) {
    constexpr const char* kName = "attn_rel_b.weight";
    const int64_t buckets = from.config().bias_buckets;
    from.keep(layer, kName, {buckets, from.config().at(from.layer()).heads});
    std::vector<int32_t> places;
    for (int64_t distance = -kFarthest; distance <= kFarthest; ++distance)
      places.push_back(bucket_of(distance, buckets, both_ways));
    const Tensor of = layer.others.extract(kName).mapped();
    return gather_rows(of, from_vector(places, {std::ssize(places)}, from.device())).eval();
  }
};

class T5 : public T5Encoder {
 public:
  void configure(const GgufFile& file, Config& config) const override {
    set_layers(file, config);
    // Models whose output is the embedding were trained so.
    if (!file.find_tensor("output.weight"))
      config.logit_scale = 1 / std::sqrt(static_cast<double>(config.width));
  }

  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    weights.encoder_norm = from.take_norm("enc.output_norm", placement.output);
    weights.output_norm = from.take_norm("dec.output_norm", placement.output);
    load_output(from, placement, weights);
  }

  Tensor logits(Blocks& blocks, const Tensor& hidden) const override {
    return Architecture::logits(blocks, hidden);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_t5() { return std::make_unique<T5>(); }
std::unique_ptr<Architecture> make_t5encoder() { return std::make_unique<T5Encoder>(); }

}  // namespace prism::llm
