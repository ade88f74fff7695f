// The gradients of layer norm and rms norm over dense rows of f32.
#pragma once

#include <cstddef>

namespace prism::cpu {

struct NormGradient {
  bool centred = false;  // layer norm
  double epsilon = 0;
  size_t n = 0;                   // elements of a row
  const float* weight = nullptr;  // may be null
};

// x_gradient for rows of x and of the result's gradient g. Adds g * normed and g of all rows to
// weight_sums and bias_sums, each of n elements; they may be null.
void norm_gradient(const NormGradient& norm, const float* x, const float* g, size_t rows,
                   float* x_gradient, float* weight_sums, float* bias_sums);

}  // namespace prism::cpu
