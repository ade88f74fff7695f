// Normalisation over the last axis.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// (x - mean) / sqrt(variance + epsilon) * weight + bias. weight and bias are floats with the length
// of the last axis, or empty tensors. The result has x's type; sums are in f32 or wider.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double epsilon = 1e-5);
// x / sqrt(mean(x^2) + epsilon) * weight.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double epsilon = 1e-5);

}  // namespace prism

#pragma GCC visibility pop
