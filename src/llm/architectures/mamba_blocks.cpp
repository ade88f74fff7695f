// The blocks of Mamba 1 and 2.
#include "llm/architectures/recurrent.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/recurrence.h"

namespace prism::llm {

std::vector<Shape> mamba_states(const Config& config) {
  const SsmConfig& ssm = config.ssm;
  return {{ssm.taps - 1, ssm.inner}, {1, ssm.keys, ssm.inner}};
}

void load_mamba(WeightLoader& from, LayerWeights& layer) {
  const SsmConfig& ssm = from.config().ssm;
  const int64_t width = from.config().width;
  from.keep_matrix(layer, "ssm_in", {2 * ssm.inner, width});
  from.keep(layer, "ssm_conv1d.weight", {ssm.inner, ssm.taps});
  from.keep(layer, "ssm_conv1d.bias", {ssm.inner});
  from.keep_matrix(layer, "ssm_x", {ssm.rank + 2 * ssm.keys, ssm.inner});
  from.keep_matrix(layer, "ssm_dt", {ssm.inner, ssm.rank});
  from.keep(layer, "ssm_dt.bias", {ssm.inner});
  from.keep(layer, "ssm_a", {ssm.inner, ssm.keys});
  from.keep(layer, "ssm_d", {ssm.inner});
  from.keep_matrix(layer, "ssm_out", {width, ssm.inner});
  from.keep_if_there(layer, "ssm_dt_norm.weight", {ssm.rank});
  from.keep_if_there(layer, "ssm_b_norm.weight", {ssm.keys});
  from.keep_if_there(layer, "ssm_c_norm.weight", {ssm.keys});
  // The scan reads the rates of adjacent channels together.
  Tensor& rates = layer.others["ssm_a"];
  rates = rates.transpose().contiguous().reshape({1, ssm.keys, ssm.inner});
  eval({rates});
}

Tensor mamba(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
  const Config& config = blocks.config();
  const SsmConfig& ssm = config.ssm;
  const int64_t rows = x.size(0);
  const std::vector<Tensor> both = split(blocks.project(x, w.matrix("ssm_in")), 2, -1);
  const Tensor seen = convolved(blocks, w, both[0], "ssm_conv1d", 0);
  std::vector<Tensor> parts =
      split(blocks.project(seen, w.matrix("ssm_x")), {ssm.rank, ssm.keys, ssm.keys}, -1);
  if (ssm.norms || w.other("ssm_dt_norm.weight"))
    for (size_t i = 0; i < parts.size(); ++i) {
      static constexpr const char* kNames[] = {"ssm_dt_norm.weight", "ssm_b_norm.weight",
                                               "ssm_c_norm.weight"};
      parts[i] = rms_norm(parts[i], w.other(kNames[i]), config.norm_epsilon);
    }
  const Tensor steps =
      Blocks::softplus(blocks.project(parts[0], w.matrix("ssm_dt")) + w.other("ssm_dt.bias"));
  const Shape one_head = {rows, 1, ssm.inner};
  const Tensor y = selective_scan(parts[2].unsqueeze(1), parts[1].unsqueeze(1),
                                  seen.reshape(one_head), steps.reshape(one_head), w.other("ssm_a"),
                                  blocks.state(1), blocks.texts(x.device()))
                       .y.reshape({rows, ssm.inner});
  return blocks.project(swiglu(both[1], y + seen * w.other("ssm_d")), w.matrix("ssm_out"));
}

std::vector<Shape> mamba2_states(const Config& config) {
  const SsmConfig& ssm = config.ssm;
  return {{ssm.taps - 1, ssm.inner + 2 * ssm.groups * ssm.keys},
          {ssm.rank, ssm.keys, ssm.inner / ssm.rank}};
}

void load_mamba2(WeightLoader& from, LayerWeights& layer) {
  const SsmConfig& ssm = from.config().ssm;
  const int64_t width = from.config().width, mixed = ssm.inner + 2 * ssm.groups * ssm.keys;
  from.keep_matrix(layer, "ssm_in", {ssm.inner + mixed + ssm.rank, width});
  from.keep(layer, "ssm_conv1d.weight", {mixed, ssm.taps});
  from.keep_if_there(layer, "ssm_conv1d.bias", {mixed});
  from.keep(layer, "ssm_dt.bias", {ssm.rank});
  from.keep(layer, "ssm_a", {ssm.rank});
  from.keep(layer, "ssm_d", {ssm.rank});
  from.keep_if_there(layer, "ssm_norm.weight", {ssm.groups, ssm.inner / ssm.groups});
  from.keep_matrix(layer, "ssm_out", {width, ssm.inner});
  // One for each channel, by group: what follows the scan is then one function of its elements.
  Tensor& d = layer.others["ssm_d"];
  d = d.reshape({ssm.rank, 1})
          .expand({ssm.rank, ssm.inner / ssm.rank})
          .contiguous()
          .reshape({ssm.groups, ssm.inner / ssm.groups});
  eval({d});
}

Tensor mamba2(const Blocks& blocks, const LayerWeights& w, const Tensor& x) {
  const SsmConfig& ssm = blocks.config().ssm;
  const int64_t rows = x.size(0), of_groups = ssm.groups * ssm.keys;
  const std::vector<Tensor> parts = split(blocks.project(x, w.matrix("ssm_in")),
                                          {ssm.inner, ssm.inner + 2 * of_groups, ssm.rank}, -1);
  const std::vector<Tensor> mixed =
      split(convolved(blocks, w, parts[1], "ssm_conv1d", 0), {ssm.inner, of_groups, of_groups}, -1);
  const Shape grouped = {rows, ssm.groups, ssm.keys};
  const Tensor y = scan_heads(blocks, w, mixed[0].reshape({rows, ssm.rank, ssm.inner / ssm.rank}),
                              parts[2] + w.other("ssm_dt.bias"), mixed[1].reshape(grouped),
                              mixed[2].reshape(grouped));
  const Shape by_group = {rows, ssm.groups, ssm.inner / ssm.groups};
  Tensor gated = swiglu(parts[0].reshape(by_group),
                        y.reshape(by_group) + mixed[0].reshape(by_group) * w.other("ssm_d"));
  if (const Tensor norm = w.other("ssm_norm.weight"))
    gated = rms_norm(gated, {}, blocks.config().norm_epsilon) * norm;
  return blocks.project(gated.reshape({rows, ssm.inner}), w.matrix("ssm_out"));
}

}  // namespace prism::llm
