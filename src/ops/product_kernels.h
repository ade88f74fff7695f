// Matrix products for GPUs in the kernel language: few rows times any weights, many rows by
// fragments, and rows routed to experts.
//
// A maker takes what the kernel is specialised by and returns it; shapes are params, so one
// program serves every shape. Beside each maker stands a function that gives grid and params of a
// launch. Weights of block types are u32 buffers in the layout of base/planes.h; activations,
// biases and results are plain.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/element_type.h"
#include "ir/capabilities.h"
#include "ir/kernel.h"

namespace prism::ops {

struct ProductLaunch {
  std::array<uint32_t, 3> groups = {1, 1, 1};
  std::vector<uint32_t> params;
};

// What is done with the product of gate and up weights: y = gate(g) * u.
enum class Gate : uint8_t { none, silu, gelu };  // gelu: by tanh

// --- few rows (vector_product.cpp): y[i][r] = sum over c of w[r][c] * x[i][c]
//
// Block types: x is rounded to 8-bit integers in shared memory, 32 elements with one scale:
// scale = m / 127 with m the largest magnitude, q = x * (127 / m) rounded to even (0 where m is
// below 2^-100); sums of 16 or 32 products are exact integers. Plain types: x as it is, fused
// multiply-adds in f32.
struct VectorProduct {
  ElementType weight = DType::f16;
  DType x = DType::f32;   // f32 or f16
  DType y = DType::f32;   // f32 or f16
  uint32_t x_rows = 1;    // at most, 1 to 8; a launch may have fewer
  bool bias = false;      // y += bias[r]
  bool residual = false;  // y += residual[i][r], after bias and gate
  Gate gate = Gate::none;
  bool experts = false;  // x_rows 1: row i of x by the weights of expert ids[i]
  bool aligned = true;   // plain types: k is a multiple of 16 bytes of weights (and of x)
  // How the work is cut: chosen by vector_product_for.
  uint32_t subgroups = 8;    // of 32 lanes, in a group
  uint32_t split = 1;        // subgroups that share a row
  uint32_t rows_each = 2;    // weight rows of a subgroup (of each matrix with a gate)
  uint32_t units_ahead = 2;  // units of each row under way while as many are used
  uint32_t k_tile = 4096;    // block types: elements of x in shared memory at once
};
// Buffers: w (all rows one after the other; u32 planes or the plain type), with a gate w_up (the
// same shape), x (x_rows x k), [ids (u32)], [bias (f32, n; with a gate bias_up too)], [residual
// (the type of y, like y)], y (x_rows x n).
// Params: n, k, rows, x_stride, y_stride (elements from a row to the next; experts: x_share
// instead of rows, the slots that share a row of x), then those of the weights (weight_units.h).
// Grid: (groups of rows, experts: slots, 1).
ir::Kernel vector_product(const VectorProduct& product);
ProductLaunch vector_product_launch(const VectorProduct& product, uint32_t n, uint32_t k,
                                    uint32_t rows, uint32_t x_stride, uint32_t y_stride);
// y[slot] = w[ids[slot]] * x[slot / x_share] for `slots` slots; x and y are dense.
ProductLaunch expert_vector_launch(const VectorProduct& product, uint32_t n, uint32_t k,
                                   uint32_t slots, uint32_t x_share);
// The cut for a shape and a device: fills the last five fields of what is asked for.
VectorProduct vector_product_for(VectorProduct product, uint32_t n, uint32_t k,
                                 const ir::Capabilities& device, uint32_t compute_units);

}  // namespace prism::ops
