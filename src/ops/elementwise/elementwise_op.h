// The op of one elementwise function call: a chain of one step, with its gradient.
#pragma once

#include "tensor/chain/chain_op.h"

namespace prism {

class ElementwiseOp : public ChainOp {
 public:
  using ChainOp::ChainOp;
  std::vector<Tensor> gradient(const GradientCall& call) const override;
};

}  // namespace prism
