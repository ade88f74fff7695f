// Matrix products: dense, batched, transposed, and with block-quantised weights.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// a [..., m, k] times b [..., k, n]; leading axes are batch axes and broadcast. One-axis tensors
// are vectors, as in NumPy. Transposed views are read in place. Types: f32, f16, bf16 (sums in
// f32), f64; different types are promoted. b may be a transposed view of a block-quantised matrix:
// then the product is linear(a, b.transpose()).
Tensor matmul(const Tensor& a, const Tensor& b);

// x [..., k] times the rows of weight [n, k], which may be block-quantised. Result: [..., n]. With
// quantised weights x is rounded to 8 bits if it has few rows, and to f16 (GPUs) or 8 bits (CPU) if
// it has many.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// Rows routed to experts: y[r, e] = weights[experts[r, e]] * x, where x is row r of x [rows, in],
// or row (r, e) of x [rows, used, in]. weights [experts, out, in] are plain or block-quantised,
// experts [rows, used] are i32 or i64, bias is [experts, out]. Result: [rows, used, out].
// Activations are rounded as in linear(). An expert out of range is an error on the CPU; other
// devices give NaN.
Tensor expert_matmul(const Tensor& x, const Tensor& weights, const Tensor& experts,
                     const Tensor& bias = {});

}  // namespace prism

#pragma GCC visibility pop
