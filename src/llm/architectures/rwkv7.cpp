// rwkv7: time mixing in which each row moves what the state holds for one key to another, and
// channel mixing, both of a row and the one before it. arwkv7 has qwen2's layers with such time
// mixing in place of attention.
#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/recurrence.h"
#include "prism/ops/reduce.h"

namespace prism::llm {

namespace {

class Rwkv7 : public Architecture {
 public:
  explicit Rwkv7(bool in_qwen) : in_qwen_(in_qwen) {}

  RequiredTensors required_tensors() const override { return {.norm_bias = !in_qwen_}; }
  void configure(const GgufFile& file, Config& config) const override {
    config.norms = in_qwen_ ? NormKind::rms : NormKind::layer;
    const int64_t head = config_integer(file, "wkv.head_size", 64, 1, config.width);
    config.ssm.keys = head;
    config.ssm.rank = config.width / head;
    std::vector<Shape> states = {{1, config.width}, {config.ssm.rank, head, head}};
    if (!in_qwen_) states.push_back({1, config.width});
    set_all_recurrent(config, states);
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const int64_t width = from.config().width, wide = from.config().feed_forward;
    layer.attention_norm = from.norm("attn_norm");
    layer.feed_forward_norm = from.norm(in_qwen_ ? "ffn_norm" : "attn_norm_2");
    // Pairs of narrow matrices; their rank is that of the file.
    const bool gated = !in_qwen_ || from.has_in_layer("time_mix_g1.weight");
    for (const char* name : {"time_mix_w", "time_mix_a", "time_mix_v", "time_mix_g"}) {
      const std::string first = std::string(name) + "1", second = std::string(name) + "2";
      if (!gated && first == "time_mix_g1") continue;
      const GgufTensor* found =
          from.file().find_tensor("blk." + std::to_string(from.layer()) + "." + first + ".weight");
      const int64_t rank = found && found->shape.rank() == 2 ? found->shape[0] : 1;
      from.keep_matrix(layer, first, {rank, width});
      from.keep_matrix(layer, second, {width, rank});
    }
    from.keep(layer, "time_mix_lerp_fused.weight", {gated ? 6 : 5, width});
    load_mixed_rows(layer, "time_mix_lerp_fused.weight");
    for (const char* name : {"time_mix_w0.weight", "time_mix_a0.weight", "time_mix_v0.weight",
                             "time_mix_k_k.weight", "time_mix_k_a.weight", "time_mix_r_k.weight"})
      from.keep(layer, name, {width});
    for (const char* name : {"time_mix_ln.weight", "time_mix_ln.bias"})
      if (!in_qwen_ || from.has_in_layer("time_mix_ln.weight")) from.keep(layer, name, {width});
    for (const char* name :
         {"time_mix_key", "time_mix_value", "time_mix_receptance", "time_mix_output"})
      from.keep_matrix(layer, name, {width, width});
    if (in_qwen_) return from.feed_forward(layer);
    from.keep(layer, "channel_mix_lerp_k.weight", {width});
    load_mixed_rows(layer, "channel_mix_lerp_k.weight");
    from.keep_matrix(layer, "channel_mix_key", {wide, width});
    from.keep_matrix(layer, "channel_mix_value", {width, wide});
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + time_mix(blocks, w, blocks.norm(x, w.attention_norm));
    const Tensor input = blocks.norm(seen, w.feed_forward_norm);
    if (in_qwen_) return seen + blocks.feed_forward(w, input);
    const Tensor mixed = mixed_rows(blocks, w, input, "channel_mix_lerp_k.weight", 2);
    const Tensor key = square(relu(blocks.project(mixed, w.matrix("channel_mix_key"))));
    return seen + blocks.project(key, w.matrix("channel_mix_value"));
  }

 private:
  static Tensor time_mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) {
    const SsmConfig& ssm = blocks.config().ssm;
    const int64_t rows = x.size(0), width = blocks.config().width;
    const Tensor all = mixed_rows(blocks, w, x, "time_mix_lerp_fused.weight", 0);
    const auto mixed = [&](int64_t i) { return all.select(0, i); };
    const auto by = [&](const char* name, const Tensor& rows_in) {
      return blocks.project(rows_in, w.matrix(name));
    };
    const Tensor r = by("time_mix_receptance", mixed(0));
    const Tensor rate =
        by("time_mix_w2", tanh(by("time_mix_w1", mixed(1)))) + w.other("time_mix_w0.weight");
    constexpr double kSlowest = -0.606531;  // -exp(-0.5): the decay is at least exp of it
    const Tensor decay = exp(sigmoid(rate) * kSlowest);
    const Tensor key = by("time_mix_key", mixed(2));
    const Tensor row_v = mixed(3);
    Tensor v = by("time_mix_value", row_v);
    // Later layers mix in the values of the first.
    if (blocks.layer() == 0) {
      blocks.carried = v;
    } else {
      const Tensor part =
          sigmoid(by("time_mix_v2", by("time_mix_v1", row_v)) + w.other("time_mix_v0.weight"));
      v = v + (blocks.carried.to(x.device()) - v) * part;
    }
    const Tensor rate_in =
        sigmoid(by("time_mix_a2", by("time_mix_a1", mixed(4))) + w.other("time_mix_a0.weight"));
    const Shape heads = {rows, ssm.rank, ssm.keys};
    const Tensor removed =
        unit_length((key * w.other("time_mix_k_k.weight")).reshape(heads), 1e-12);
    const Tensor k = (key + (rate_in - 1.0) * key * w.other("time_mix_k_a.weight")).reshape(heads);
    const Tensor read = r.reshape(heads), given = v.reshape(heads);
    const Tensor y = moving_scan(read, k, given, decay.reshape(heads), removed,
                                 rate_in.reshape(heads), blocks.state(1), blocks.texts(x.device()))
                         .y;
    Tensor seen = y.reshape({rows, width});
    if (const Tensor weight = w.other("time_mix_ln.weight"))
      seen = layer_norm(y, {}, {}, 64e-5).reshape({rows, width}) * weight +
             w.other("time_mix_ln.bias");
    const Tensor weights = w.other("time_mix_r_k.weight").reshape({1, ssm.rank, ssm.keys});
    const Tensor own = (row_sum(k * read * weights) * given).reshape({rows, width});
    seen = seen + own;
    if (w.matrix("time_mix_g2"))
      seen = seen * by("time_mix_g2", sigmoid(by("time_mix_g1", mixed(5))));
    return by("time_mix_output", seen);
  }

  bool in_qwen_;
};

}  // namespace

std::unique_ptr<Architecture> make_rwkv7() { return std::make_unique<Rwkv7>(false); }
std::unique_ptr<Architecture> make_arwkv7() { return std::make_unique<Rwkv7>(true); }

}  // namespace prism::llm
