// rwkv6: time mixing over a matrix of state for each head, and channel mixing, both of a row and
// the one before it. rwkv6qwen2 has qwen2's layers with time mixing in place of attention.
#include <cmath>

#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/recurrence.h"
#include "prism/ops/reduce.h"

namespace prism::llm {

namespace {

class Rwkv6 : public Architecture {
 public:
  explicit Rwkv6(bool in_qwen) : in_qwen_(in_qwen) {}

  RequiredTensors required_tensors() const override { return {.norm_bias = !in_qwen_}; }
  void configure(const GgufFile& file, Config& config) const override {
    config.norms = in_qwen_ ? NormKind::rms : NormKind::layer;
    const int64_t head = config_integer(file, "wkv.head_size", 64, 1, config.width);
    config.ssm.keys = head;
    config.ssm.rank = config.width / head;
    config.rescale_every = config_integer(file, "rescale_every_n_layers", 0, 0, 4096);
    const Shape row = {1, config.width}, matrices = {config.ssm.rank, head, head};
    if (in_qwen_) {
      // Several heads may share a key and a value.
      const int64_t shared = config.at(0).kv_heads;
      config.ssm.groups = shared > 0 && config.ssm.rank % shared == 0 ? shared : config.ssm.rank;
      config.rescale_every = 0;
      return set_all_recurrent(config, {row, matrices});
    }
    config.ssm.groups = config.ssm.rank;
    set_all_recurrent(config, {row, matrices, row});
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const Config& config = from.config();
    const int64_t width = config.width, wide = config.feed_forward;
    const int64_t mixed = config_integer(from.file(), "time_mix_extra_dim", 32, 1, 1 << 16),
                  decayed = config_integer(from.file(), "time_decay_extra_dim", 64, 1, 1 << 16);
    layer.attention_norm = from.norm("attn_norm");
    layer.feed_forward_norm = from.norm(in_qwen_ ? "ffn_norm" : "attn_norm_2");
    load_previous_rows(from, layer);
    from.keep_matrix(layer, "time_mix_w1", {5 * mixed, width});
    from.keep(layer, "time_mix_w2.weight", {5, width, mixed});
    from.keep(layer, "time_mix_lerp_x.weight", {width});
    const bool fused = from.has_in_layer("time_mix_lerp_fused.weight");
    if (fused) from.keep(layer, "time_mix_lerp_fused.weight", {5, width});
    for (const char* name : kMixed) {
      const std::string each = std::string("time_mix_lerp_") + name + ".weight";
      if (fused)
        from.leave_out(each);
      else
        from.keep(layer, each, {width});
    }
    from.keep(layer, "time_mix_decay.weight", {width});
    from.keep_matrix(layer, "time_mix_decay_w1", {decayed, width});
    from.keep_matrix(layer, "time_mix_decay_w2", {width, decayed});
    const int64_t given = config.ssm.groups * config.ssm.keys;
    for (const char* name : {"time_mix_key", "time_mix_value"}) {
      from.keep_matrix(layer, name, {given, width});
      from.keep_if_there(layer, std::string(name) + ".bias", {given});
    }
    from.keep_if_there(layer, "time_mix_receptance.bias", {width});
    for (const char* name : {"time_mix_receptance", "time_mix_gate", "time_mix_output"})
      from.keep_matrix(layer, name, {width, width});
    if (in_qwen_) return from.feed_forward(layer);
    from.keep(layer, "time_mix_first.weight", {config.ssm.rank, config.ssm.keys});
    from.keep_matrix(layer, "channel_mix_receptance", {width, width});
    for (const char* name : {"time_mix_ln.weight", "time_mix_ln.bias", "channel_mix_lerp_k.weight",
                             "channel_mix_lerp_r.weight"})
      from.keep(layer, name, {width});
    from.keep_matrix(layer, "channel_mix_key", {wide, width});
    from.keep_matrix(layer, "channel_mix_value", {width, wide});
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const Tensor seen = x + time_mix(blocks, w, blocks.norm(x, w.attention_norm));
    const Tensor input = blocks.norm(seen, w.feed_forward_norm);
    if (in_qwen_) return seen + blocks.feed_forward(w, input);
    const Tensor change = previous_rows(blocks, w, input, 2) - input;
    const auto mixed = [&](const char* name) { return input + change * w.other(name); };
    const Tensor key = square(
        relu(blocks.project(mixed("channel_mix_lerp_k.weight"), w.matrix("channel_mix_key"))));
    const Tensor gate = sigmoid(
        blocks.project(mixed("channel_mix_lerp_r.weight"), w.matrix("channel_mix_receptance")));
    const Tensor result = seen + gate * blocks.project(key, w.matrix("channel_mix_value"));
    const int64_t every = blocks.config().rescale_every;
    return every > 0 && (blocks.layer() + 1) % every == 0 ? result * 0.5 : result;
  }

 private:
  static constexpr const char* kMixed[] = {"w", "k", "v", "r", "g"};

  Tensor time_mix(const Blocks& blocks, const LayerWeights& w, const Tensor& x) const {
    const SsmConfig& ssm = blocks.config().ssm;
    const int64_t rows = x.size(0), width = blocks.config().width;
    const Tensor change = previous_rows(blocks, w, x, 0) - x;
    // How much of the row before each projection sees, which the row itself decides.
    const Tensor by = tanh(
        blocks.project(x + change * w.other("time_mix_lerp_x.weight"), w.matrix("time_mix_w1")));
    const std::vector<Tensor> bys = split(by, 5, -1);
    const Tensor second = w.other("time_mix_w2.weight"),
                 fused = w.other("time_mix_lerp_fused.weight");
    const auto mixed = [&](int64_t i) {
      const auto at = static_cast<size_t>(i);
      const Tensor base = fused ? fused.select(0, i)
                                : w.other(std::string("time_mix_lerp_") + kMixed[at] + ".weight");
      return x + change * (linear(bys[at], second.select(0, i)) + base);
    };
    const Shape heads = {rows, ssm.rank, ssm.keys};
    const auto biased = [&](const Tensor& row, const std::string& name) {
      const Tensor each = blocks.project(row, w.matrix(name)), bias = w.other(name + ".bias");
      return bias ? each + bias : each;
    };
    const auto shared = [&](const Tensor& row, const char* name) {
      const Tensor of_groups = biased(row, name).reshape({rows, ssm.groups, ssm.keys});
      return ssm.groups == ssm.rank ? of_groups : repeat(of_groups, ssm.rank / ssm.groups, 1);
    };
    Tensor k = shared(mixed(1), "time_mix_key");
    const Tensor v = shared(mixed(2), "time_mix_value");
    const Tensor r = biased(mixed(3), "time_mix_receptance").reshape(heads);
    const Tensor opening = blocks.project(mixed(4), w.matrix("time_mix_gate"));
    const Tensor gate = in_qwen_ ? sigmoid(opening) : silu(opening);
    const Tensor slow = tanh(blocks.project(mixed(0), w.matrix("time_mix_decay_w1")));
    const Tensor rate =
        blocks.project(slow, w.matrix("time_mix_decay_w2")) + w.other("time_mix_decay.weight");
    const Tensor decay = exp(-exp(rate)).reshape(heads);
    if (in_qwen_) {
      // What a key gives is what the decay takes; the row itself counts, and there is no norm.
      k = k - k * decay;
      const double scale = 1 / std::sqrt(static_cast<double>(ssm.keys));
      const Tensor y =
          state_scan(r * scale, k, v, decay, blocks.state(1), blocks.texts(x.device())).y;
      return blocks.project(y.reshape({rows, width}) * gate, w.matrix("time_mix_output"));
    }
    const Tensor before = state_scan(r, k, v, decay, blocks.state(1), blocks.texts(x.device()),
                                     {.reads_before = true})
                              .y;
    // The row itself counts by a weight of its own.
    const Tensor y = before + sum(r * k * w.other("time_mix_first.weight"), {-1}, true) * v;
    const Tensor normed =
        layer_norm(y, {}, {}, 64e-5).reshape({rows, width}) * w.other("time_mix_ln.weight") +
        w.other("time_mix_ln.bias");
    return blocks.project(normed * gate, w.matrix("time_mix_output"));
  }

  bool in_qwen_;
};

}  // namespace

std::unique_ptr<Architecture> make_rwkv6() { return std::make_unique<Rwkv6>(false); }
std::unique_ptr<Architecture> make_rwkv6qwen2() { return std::make_unique<Rwkv6>(true); }

}  // namespace prism::llm
