// qwen3next, qwen35 and qwen35moe: layers of the gated delta rule, and every few of gated
// attention; experts with a gated shared one.
#include <cmath>

#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/recurrence.h"

namespace prism::llm {

namespace {

class Qwen35 : public TransformerArchitecture {
 public:
  NormNames norm_names() const override { return {.feed_forward = "post_attention_norm"}; }
  RequiredTensors required_tensors() const override { return {.head_norms = true}; }
  void configure(const GgufFile& file, Config& config) const override {
    leave_out_proposing_layers(file, config);
    set_ssm(file, config);
    config.q_has_gate = true;
    if (config.experts > 0) {
      set_expert_width(file, config, true);
      set_shared_width(file, config, config.feed_forward);
    }
    const SsmConfig& ssm = config.ssm;
    set_recurrent_layers(file, config, 4,
                         {{ssm.taps - 1, ssm.inner + 2 * ssm.groups * ssm.keys},
                          {ssm.rank, ssm.keys, ssm.inner / ssm.rank}});
  }
  void load_mixer(WeightLoader& from, LayerWeights& layer) const override {
    const SsmConfig& ssm = from.config().ssm;
    const int64_t width = from.config().width, mixed = ssm.inner + 2 * ssm.groups * ssm.keys;
    if (!is_recurrent(from.config(), from.layer())) {
      from.attention(layer);
      for (Linear* each : {&layer.q, &layer.k, &layer.v}) each->bias = {};  // never added
      return;
    }
    if (from.has_in_layer("attn_qkv.weight")) {
      from.keep_matrix(layer, "attn_qkv", {mixed, width});
      from.keep_matrix(layer, "attn_gate", {ssm.inner, width});
      from.leave_out("ssm_in.weight");  // the same in another order
    } else {
      from.keep_matrix(layer, "ssm_in", {mixed + ssm.inner, width});
    }
    load_gates(from, layer);
    from.keep(layer, "ssm_conv1d.weight", {mixed, ssm.taps});
    from.keep(layer, "ssm_dt.bias", {ssm.rank});
    from.keep(layer, "ssm_a", {ssm.rank});
    from.keep(layer, "ssm_norm.weight", {ssm.inner / ssm.rank});
    from.keep_matrix(layer, "ssm_out", {width, ssm.inner});
  }
  Tensor mix(Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    if (!is_recurrent(blocks.config(), blocks.layer())) return blocks.attention(w, x);
    const SsmConfig& ssm = blocks.config().ssm;
    const int64_t rows = x.size(0), keys = ssm.groups * ssm.keys, values = ssm.inner / ssm.rank;
    const auto [joined, z] = projected(blocks, w, x);
    const std::vector<Tensor> parts =
        split(convolved(blocks, w, joined, "ssm_conv1d", 0), {keys, keys, ssm.inner}, -1);
    const Shape by_group = {rows, ssm.groups, ssm.keys}, by_head = {rows, ssm.rank, values};
    const double epsilon = blocks.config().norm_epsilon;
    const Tensor q = unit_length(parts[0].reshape(by_group), epsilon) *
                     (1 / std::sqrt(static_cast<double>(ssm.keys)));
    const Tensor k = unit_length(parts[1].reshape(by_group), epsilon);
    const auto [beta, alpha] = gates(blocks, w, x);
    const Tensor decay = exp(Blocks::softplus(alpha + w.other("ssm_dt.bias")) * w.other("ssm_a"));
    const Tensor y = delta_scan(q, k, parts[2].reshape(by_head), decay, sigmoid(beta),
                                blocks.state(1), blocks.texts(x.device()), tiled_keys())
                         .y;
    const Tensor gated =
        rms_norm(y, w.other("ssm_norm.weight"), epsilon) * silu(z.reshape(by_head));
    return blocks.project(gated.reshape({rows, ssm.inner}), w.matrix("ssm_out"));
  }

 protected:
  struct Two {
    Tensor first, second;
  };
  virtual bool tiled_keys() const { return true; }
  virtual void load_gates(WeightLoader& from, LayerWeights& layer) const {
    for (const char* name : {"ssm_beta", "ssm_alpha"})
      from.keep_matrix(layer, name, {from.config().ssm.rank, from.config().width});
  }
  // Beta and alpha, [rows, heads].
  virtual Two gates(const Blocks& blocks, const LayerWeights& w, const Tensor& x) const {
    return {blocks.project(x, w.matrix("ssm_beta")), blocks.project(x, w.matrix("ssm_alpha"))};
  }

 private:
  // Queries, keys and values together, and the output's gate. Older files have all in one matrix,
  // group by group.
  static Two projected(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
    if (const Linear& qkv = w.matrix("attn_qkv"))
      return {blocks.project(x, qkv), blocks.project(x, w.matrix("attn_gate"))};
    const SsmConfig& ssm = blocks.config().ssm;
    const int64_t rows = x.size(0), values = ssm.inner / ssm.groups;
    const std::vector<Tensor> parts =
        split(blocks.project(x, w.matrix("ssm_in")).reshape({rows, ssm.groups, -1}),
              {ssm.keys, ssm.keys, values, values}, -1);
    std::vector<Tensor> flat;
    for (const Tensor& each : parts) flat.push_back(each.reshape({rows, -1}));
    return {concat(std::span(flat).first(3), -1), flat[3]};
  }
};

class Qwen3Next : public Qwen35 {
 protected:
  bool tiled_keys() const override { return false; }
  void load_gates(WeightLoader& from, LayerWeights& layer) const override {
    from.keep_matrix(layer, "ssm_ba", {2 * from.config().ssm.rank, from.config().width});
  }
  Two gates(const Blocks& blocks, const LayerWeights& w, const Tensor& x) const override {
    const SsmConfig& ssm = blocks.config().ssm;
    const int64_t rows = x.size(0);
    const std::vector<Tensor> both =
        split(blocks.project(x, w.matrix("ssm_ba")).reshape({rows, ssm.groups, -1}), 2, -1);
    return {both[0].reshape({rows, ssm.rank}), both[1].reshape({rows, ssm.rank})};
  }
};

}  // namespace

std::unique_ptr<Architecture> make_qwen35() { return std::make_unique<Qwen35>(); }
std::unique_ptr<Architecture> make_qwen3next() { return std::make_unique<Qwen3Next>(); }

}  // namespace prism::llm
