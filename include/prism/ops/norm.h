// Norms over the last axis.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// (x - mean) / sqrt(variance + epsilon) * weight + bias. weight and bias have as many elements as
// the last axis, or are empty tensors for none; floats. The result has x's type; sums are in f32 or
// better.
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {},
                  double epsilon = 1e-5);
// x / sqrt(mean(x^2) + epsilon) * weight.
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, double epsilon = 1e-5);

}  // namespace prism

#pragma GCC visibility pop
