// ExpressionOp: the base of ops that compute an expression of other ops in one step on the CPU.
#pragma once

#include "tensor/op.h"

namespace prism {

// Whoever makes the node chooses: this op on the CPU, the expression on other devices. The gradient
// is that of the expression, which may take more memory than the op.
class ExpressionOp : public Op {
 public:
  // The outputs for these inputs, by ops that have gradients.
  virtual std::vector<Tensor> expression(std::span<const Tensor> inputs) const = 0;

  std::optional<std::string> cannot_run(const DeviceInfo& device,
                                        std::span<const Tensor> inputs) const override;
  void launch(DeviceCall& call) const override;
};

}  // namespace prism
