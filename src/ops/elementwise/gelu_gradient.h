// The gradient of gelu.
#pragma once

#include <optional>

#include "prism/tensor.h"

namespace prism {

// The slope of gelu at x, as an expression of elementwise functions.
Tensor gelu_slope(const Tensor& x);

// g times the slope as one op, which computes one exponential; nullopt if there is none for the
// device or the types.
std::optional<Tensor> gelu_gradient(const Tensor& x, const Tensor& g);

}  // namespace prism
