// The op for attention over a KV cache.
#pragma once

#include "cpu/attention.h"
#include "tensor/op.h"
#include "tensor/plan/preparation.h"

namespace prism {

// Inputs: q, k, v, spans, then the optional table, mask and sinks (see prism/ops/attention.h).
class AttentionOp : public Op, public MakesPrepared {
 public:
  double scale = 1, soft_cap = 0, max_bias = 0;
  bool causal = true, chunked = false, has_table = false, has_mask = false, has_sinks = false;
  int64_t window = 0, most_queries = 1;
  int64_t value_dim = 0;  // of the result; at most that of v
  bool whole = false;     // span i is all rows of sequence i and all keys of slot i
  // Has a second output for the gradient's kernels, f32 [rows, heads]: log2 of the sum of each
  // query's weights. Queries may then be bf16, and those of f32 are not rounded to f16.
  bool keeps_sums = false;
  bool narrow = false;  // stores the result of f32 queries as f16
  bool rounded =
      false;  // rounds output rows to 8 bits (ops/products/rounded_rows.h); decode kernels only

  std::string_view name() const override { return "attention"; }
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  // Only for whole sequences of types and sizes that AttentionGradientOp has; attention() composes
  // other ops for the rest.
  bool has_gradient() const override { return whole; }
  std::vector<Tensor> gradient(const GradientCall& call) const override;
  // Scores with -infinity for the keys that a query does not see; see attention().
  Tensor masked(const Tensor& scores) const;
  // Why a device cannot compute the gradient of these q, k and v without a score matrix; nullopt if
  // it can.
  static std::optional<std::string> no_whole_gradient(const Device& device,
                                                      std::span<const Tensor> inputs);
  // Whether the device lacks a native kernel, and the gradient's kernels need the sums.
  static bool needs_sums(const Device& device) { return !device.info().is_cpu; }
  void run_cpu(const CpuCall& call) const override;
  void sums_on_cpu(const CpuCall& call) const;
  cpu::Attention cpu_options(const HostView& q, const HostView& k, const HostView& v) const;
  void launch(DeviceCall& call) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;
  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  // Accepts only a cast to f16.
  std::shared_ptr<const Op> with_epilogue(const Chain& chain, size_t chain_input) const override;
  std::shared_ptr<const Op> with_prepared(const Device& device, std::span<const Tensor> inputs,
                                          const Op& prepare, const Shape& seen,
                                          bool kept) const override;
  std::string attributes() const override;
  double operations(std::span<const DeviceView> inputs,
                    std::span<const DeviceView> outputs) const override;
};

}  // namespace prism
