// The gradient of cross entropy as one op.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

namespace prism {

// From logits [rows, classes] (f32, f16 or bf16), targets (i32 [rows]) and the gradient of the
// losses (f32 [rows]) to that of the logits, in their type.
Tensor cross_entropy_gradient(const Tensor& logits, const Tensor& target, const Tensor& g,
                              int32_t ignored);

}  // namespace prism
