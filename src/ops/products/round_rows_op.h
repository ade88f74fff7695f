// The op that rounds rows of activations to 8 bits, which the planner puts before several products
// of one input with quantised weights.
#pragma once

#include "prism/element_type.h"
#include "tensor/op.h"

namespace prism {

// x [..., k] gives [rows, memory of a row]: on the CPU u8 in the layout of cpu::ActivationsView
// (all rows of one part, then those of the next), on other devices i32 in the layout of
// ops/products/rounded_rows.h.
class RoundRowsOp : public Op {
 public:
  // For products of x with weights of this type.
  RoundRowsOp(const Device& device, BlockType type) : cpu_(device.info().is_cpu), type_(type) {}
  std::string_view name() const override { return "round_rows"; }
  std::string attributes() const override;
  std::vector<Spec> infer(std::span<const Tensor> inputs) const override;
  bool has_gradient() const override { return false; }
  void run_cpu(const CpuCall& call) const override;
  void launch(DeviceCall& call) const override;
  bool takes_layout(size_t input, const Tensor& tensor, const DeviceInfo& device) const override;

  // Whether the device is certain to support rounding this x.
  static bool runs_on(const Device& device, const Tensor& x);

 private:
  bool cpu_;
  BlockType type_;
};

}  // namespace prism
