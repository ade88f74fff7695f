// The gradients of layer norm and rms norm.
#pragma once

#include <vector>

#include "ops/rows/norm_kernel.h"
#include "tensor/op.h"

namespace prism {

// The gradients of x, the weight and the bias for the gradient g of the result. All are computed
// in `type`; weight is empty if the norm has none. They are one op if type and tensors are f32, and
// on devices with kernels if the rows are not too long.
struct NormGradients {
  Tensor x, weight, bias;
};
NormGradients norm_gradients(const NormKind& kind, double epsilon, DType type, const Tensor& x,
                             const Tensor& g, const Tensor& weight);

}  // namespace prism
