// Conversion between plain and block-quantised tensors.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Quantises rows of floats to blocks of a type (all but iq4_nl and iq4_xs). Scales minimise the
// squared error, weighted by importance if it is given: a number of 0 or more for each column. The
// last axis must be a multiple of the type's block. Runs on the CPU, for tensors of any device. Has
// no gradient.
Tensor quantise(const Tensor& x, BlockType type, const Tensor& importance = {});

// The elements of a block-quantised tensor as f32, f16 or bf16, equal on every device. Gradients
// stop here: such weights are constants.
Tensor dequantise(const Tensor& x, DType type = DType::f32);

}  // namespace prism

#pragma GCC visibility pop
