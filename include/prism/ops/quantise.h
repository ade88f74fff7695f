// Between plain and block-quantised tensors.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Rows of floats as blocks of a type (all but iq4_nl and iq4_xs), with scales searched for the
// least squared error, which importance weighs where it is given: one number, 0 or more, a column.
// The last axis must be a multiple of the type's block. Runs on the CPU, from tensors of any
// device. Has no gradient.
Tensor quantise(const Tensor& x, BlockType type, const Tensor& importance = {});

// The elements of a block-quantised tensor as f32, f16 or bf16, the same on every device. No
// gradient goes back through it: such weights are constants.
Tensor dequantise(const Tensor& x, DType type = DType::f32);

}  // namespace prism

#pragma GCC visibility pop
