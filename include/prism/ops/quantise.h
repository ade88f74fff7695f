// Conversion between plain and block-quantised tensors.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// Quantises rows of floats to a block type (q4_0 to q8_0, q2_k to q6_k, mxfp4). Scales minimise the
// squared error, weighted by the optional importance: a non-negative number per column. The last
// axis must be a multiple of the type's block. Runs on the CPU, for tensors on any device. Has no
// gradient.
Tensor quantise(const Tensor& x, BlockType type, const Tensor& importance = {});

// The elements of a block-quantised tensor as f32, f16 or bf16, equal on every device. Has no
// gradient: quantised weights are constants.
Tensor dequantise(const Tensor& x, DType type = DType::f32);

}  // namespace prism

#pragma GCC visibility pop
