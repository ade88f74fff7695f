// Matrix products: dense and with block-quantised weights, batched, either side transposed.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// a [..., m, k] times b [..., k, n]; the axes before are a batch and broadcast. One axis is a
// vector, as NumPy has it. Transposed views are read as they lie. Types: f32, f16, bf16 (sums in
// f32), f64; different ones meet at the one that holds both. b may be a transposed view of a
// block-quantised matrix: then it is linear(a, b.transpose()).
Tensor matmul(const Tensor& a, const Tensor& b);

// x [..., k] times the rows of weight [n, k], which may be block-quantised: [..., n]. With
// quantised weights x is rounded to 8 bits for products of few rows, and to f16 (GPUs) or 8 bits
// (the CPU) for many.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// Rows routed to experts: y[r, e] = weights[experts[r, e]] * x, where x is row r of x [rows, in],
// or row (r, e) of x [rows, used, in]. weights [experts, out, in] of a plain or a block-quantised
// type, experts [rows, used] of i32 or i64, bias [experts, out]: y [rows, used, out]. Activations
// are rounded as linear() rounds them. An expert that does not exist is an error on the CPU; other
// devices give NaN in its place.
Tensor expert_matmul(const Tensor& x, const Tensor& weights, const Tensor& experts,
                     const Tensor& bias = {});

}  // namespace prism

#pragma GCC visibility pop
