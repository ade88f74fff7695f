// The sum of the squares of many tensors.
#pragma once

#include <span>

#include "prism/tensor.h"

namespace prism {

// Whether a device adds the squares of all of these in one op: f32, at least two of them, dense,
// not on the CPU.
bool has_square_sum(std::span<const Tensor> tensors);
Tensor square_sum(std::span<const Tensor> tensors);  // f32 []

}  // namespace prism
