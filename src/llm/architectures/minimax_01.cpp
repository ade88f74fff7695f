// minimax-01: layers of attention whose memory decays at a fixed rate, and every eighth of usual
// attention; experts. The normed input takes the place of the residual.
#include <cmath>

#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/recurrence.h"

namespace prism::llm {

namespace {

class MiniMax01 : public Architecture {
 public:
  RequiredTensors required_tensors() const override { return {.expert_gate = false}; }
  void configure(const GgufFile& file, Config& config) const override {
    require_experts(file, config);
    config.residual_scale = config_number(file, "residual_scale", 1);
    set_recurrent_layers(file, config, 8, {{config.heads, config.head_dim, config.head_dim}});
  }
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    const Config& config = from.config();
    const int64_t inner = config.heads * config.head_dim;
    layer.attention_norm = from.norm("attn_norm");
    if (is_recurrent(config, from.layer())) {
      layer.qkv = from.linear("attn_qkv", 3 * inner, config.width);
      layer.attention_gate = from.linear("attn_gate", inner, config.width);
      layer.attention_inner_norm = from.norm("attn_norm_2", inner);
      layer.out = from.linear("attn_output", config.width, inner);
      layer.others["decay"] = decays(config, from.layer(), from.device());
    } else {
      from.attention(layer);
    }
    layer.feed_forward_norm = from.norm("ffn_norm");
    from.experts(layer);
  }
  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const double scale = blocks.config().residual_scale;
    const Tensor input = blocks.norm(x, w.attention_norm);
    const bool recurs = is_recurrent(blocks.config(), blocks.layer());
    const Tensor seen =
        (recurs ? decaying_attention(blocks, w, input) : blocks.attention(w, input)) +
        input * scale;
    const Tensor inner = blocks.norm(seen, w.feed_forward_norm);
    return blocks.experts(w, inner) + inner * scale;
  }

 private:
  // Heads forget at rates from fast to slow; later layers forget more slowly.
  static Tensor decays(const Config& config, int64_t layer, const Device& device) {
    const double slope = std::exp2(-std::exp2(3 - std::log2(static_cast<double>(config.heads))));
    const double last = static_cast<double>(std::max<int64_t>(1, config.layers - 1));
    const double scale = 1 - static_cast<double>(layer) / last + 1e-5;
    std::vector<float> values;
    for (int64_t head = 0; head < config.heads; ++head)
      values.push_back(
          static_cast<float>(std::exp(-scale * std::pow(slope, static_cast<double>(head + 1)))));
    return from_vector(values, {1, config.heads}, device);
  }
  static Tensor decaying_attention(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
    const Config& config = blocks.config();
    const int64_t rows = x.size(0);
    const std::vector<Tensor> parts = split(
        silu(blocks.project(x, w.qkv)).reshape({rows, config.heads, 3 * config.head_dim}), 3, -1);
    const Tensor y = state_scan(parts[0], parts[1], parts[2],
                                w.other("decay").expand({rows, config.heads}).contiguous(),
                                blocks.state(0), blocks.texts(x.device()))
                         .y.reshape({rows, config.heads * config.head_dim});
    const Tensor gate = sigmoid(blocks.project(x, w.attention_gate));
    return blocks.project(gate * blocks.norm(y, w.attention_inner_norm), w.out);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_minimax_01() { return std::make_unique<MiniMax01>(); }

}  // namespace prism::llm
