// The gradient of a product with quantised weights.
#pragma once

#include "prism/tensor.h"

namespace prism {

// Whether the device multiplies g [m, n] by quantised weights [n, k] that it decodes for the time
// of the product. Elsewhere the whole of the decoded weights is a tensor.
bool has_block_gradient(const Tensor& g, const Tensor& weights);
// f32 [m, k]; g and the weights are rounded to bf16.
Tensor block_gradient(const Tensor& g, const Tensor& weights);

}  // namespace prism
