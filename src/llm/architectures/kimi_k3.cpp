// kimi-k3: kimi-linear whose blocks read a mix of the residual stream with kept inputs of earlier
// layers, whose experts work on narrower rows, and whose attention has a gate.
#include <algorithm>

#include "llm/architectures/kimi_linear.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/reduce.h"
#include "prism/ops/softmax.h"

namespace prism::llm {

namespace {

constexpr const char *kAttentionScore = "attn_res_score.weight",
                     *kInnerScore = "ffn_res_score.weight", *kLastScore = "output_res_score.weight";
constexpr const char *kDown = "ffn_routed_down", *kUp = "ffn_routed_up",
                     *kInnerNorm = "ffn_routed_norm.weight";

class KimiK3 : public KimiLinear {
 public:
  void load_layer(WeightLoader& from, LayerWeights& layer) const override {
    KimiLinear::load_layer(from, layer);
    const Config& config = from.config();
    if (config.residual_block > 0)
      for (const char* name : {kAttentionScore, kInnerScore})
        from.keep(layer, name, {config.width});
    if (!layer.router || config.expert_width == 0) return;
    from.keep_matrix(layer, kDown, {config.expert_width, config.width});
    from.keep_matrix(layer, kUp, {config.width, config.expert_width});
    from.keep_if_there(layer, kInnerNorm, {config.expert_width});
  }
  void load_ends(WeightLoader& from, const Placement& placement, Weights& weights) const override {
    KimiLinear::load_ends(from, placement, weights);
    if (from.config().residual_block > 0)
      weights.others[kLastScore] = from.take(kLastScore, {from.config().width}, placement.output);
  }

  Tensor layer(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const int64_t period = blocks.config().residual_block;
    const Tensor input = mixed(blocks, blocks.carried, x, w.other(kAttentionScore));
    const bool is_kept = period > 0 && blocks.layer() % period == 0;
    if (is_kept) blocks.carried = with(blocks.carried, x);
    // The stream begins anew behind an input that is kept.
    const Tensor attended = mix(blocks, w, blocks.norm(input, w.attention_norm));
    const Tensor seen = is_kept ? attended : x + attended;
    const Tensor next = mixed(blocks, blocks.carried, seen, w.other(kInnerScore));
    return seen + inner(blocks, w, blocks.norm(next, w.feed_forward_norm));
  }
  Tensor hidden(Blocks& blocks, const Tensor& x) const override {
    if (!blocks.carried) return KimiLinear::hidden(blocks, x);
    Tensor kept = blocks.carried;
    if (kept.size(0) != x.size(0)) {
      const Tensor rows = blocks.wanted_rows(kept.reshape({kept.size(0), -1}));
      kept = rows.reshape({rows.size(0), kept.size(1), kept.size(2)});
    }
    return KimiLinear::hidden(blocks,
                              mixed(blocks, kept, x, blocks.weights().others.at(kLastScore)));
  }

 protected:
  void finish(const GgufFile& file, Config& config) const override {
    for (LayerConfig& each : config.each_layer) each.rotated = false;
    config.activation = Activation::situ;
    config.situ_bound = config_number(file, "activation.situ_beta", 1);
    config.situ_up_bound = config_number(file, "activation.situ_linear_beta", 0, {.zero = true});
    config.residual_block = config_integer(file, "attn_res.block_size", 0, 0, 4096);
    config.expert_width = config_integer(file, "expert_latent_length", 0, 0, 1 << 20);
    config.shared_feed_forward =
        std::max<int64_t>(1, config_integer(file, "expert_shared_count", 1, 0, 1024)) *
        config.expert_feed_forward;
    const std::string key = config_key(file, "kda.gate_lower_bound");
    config.fastest_decay = file.has(key) ? file.number(key) : 0;
  }
  void load_gates(WeightLoader& from, LayerWeights& layer) const override {
    const SsmConfig& ssm = from.config().ssm;
    from.keep_matrix(layer, "ssm_f_a", {ssm.keys, from.config().width});
    from.keep_matrix(layer, "ssm_f_b", {ssm.inner, ssm.keys});
    from.keep_matrix(layer, "ssm_g", {ssm.inner, from.config().width});
  }
  Tensor gate(const Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const double fastest = blocks.config().fastest_decay;
    if (fastest == 0) return KimiLinear::gate(blocks, w, x);
    return sigmoid(-(x * rates(blocks, w))) * fastest;
  }

 private:
  // Kept inputs are [rows, count, width].
  static Tensor with(const Tensor& kept, const Tensor& x) {
    const Tensor last = x.unsqueeze(1);
    if (!kept) return last;
    const Tensor parts[] = {kept.to(x.device()), last};
    return concat(parts, 1);
  }
  // Attention of a row to its own kept inputs and to itself.
  static Tensor mixed(const Blocks& blocks, const Tensor& kept, const Tensor& x,
                      const Tensor& score) {
    if (!kept) return x;
    const Tensor all = with(kept, x);
    const Tensor shares = softmax(sum(blocks.norm(all, {score, {}}), {-1}), -1);
    return sum(all * shares.unsqueeze(-1), {1});
  }
  static Tensor inner(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
    if (!w.router) return blocks.feed_forward(w, x);
    if (!w.matrix(kDown)) return blocks.experts(w, x);
    Tensor chosen = blocks.routed(w, blocks.project(x, w.matrix(kDown)), blocks.choose(w, x));
    if (const Tensor norm = w.other(kInnerNorm)) chosen = blocks.norm(chosen, {norm, {}});
    const Tensor result = blocks.project(chosen, w.matrix(kUp));
    if (!w.shared_up) return result;
    LayerWeights shared;
    shared.gate = w.shared_gate, shared.up = w.shared_up, shared.down = w.shared_down;
    return result + blocks.feed_forward(shared, x);
  }
};

}  // namespace

std::unique_ptr<Architecture> make_kimi_k3() { return std::make_unique<KimiK3>(); }

}  // namespace prism::llm
