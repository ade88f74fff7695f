// Products of activations with block-quantised weights, on integer dot instructions.
#pragma once

#include <cstdint>

#include "base/system/thread_pool.h"
#include "cpu/products/quantised_activations.h"
#include "cpu/products/quantised_kernels.h"
#include "prism/element_type.h"

namespace prism::cpu {

// Weights as files hold them: rows x k elements in whole blocks, the next row after the last block.
struct QuantisedWeights {
  BlockType type;
  const void* data;
  uint64_t rows, k;
  uint64_t row_bytes() const { return ElementType(type).row_bytes(k); }
};

// y[i][r] = sum over e of x[i][e] * w[r][e], x of x_rows rows with x_stride elements from row to
// row, y likewise with y_stride. x is rounded to 8 bits first (quantise_activations); apart from
// that the result is that of f32 arithmetic: integers within a block, floats between blocks.
// A length that is no multiple of the type's block, or a stride shorter than a row, is an Error.
void quantised_product(ThreadPool& pool, BlockType type, const void* weights, uint64_t rows,
                       uint64_t k, const float* x, uint64_t x_rows, uint64_t x_stride, float* y,
                       uint64_t y_stride);

// The same with activations that were rounded before, for several products of the same x. They must
// have been rounded for weights with the same elements a block.
void quantised_product(ThreadPool& pool, const QuantisedWeights& weights, const ActivationsView& x,
                       float* y, uint64_t y_stride);

// The results of weight rows first .. last - 1 only, in their places in y, on the calling thread:
// for callers that split the work themselves.
void quantised_product_rows(const QuantisedWeights& weights, uint64_t first, uint64_t last,
                            const ActivationsView& x, float* y, uint64_t y_stride);

// Rows routed to experts: the weights are `experts` matrices of rows x k one after the other, and
// row o of y, of x_rows * uses rows, is row o / uses of x times matrix expert_of[o]. An expert that
// does not exist is an Error.
void quantised_expert_product(ThreadPool& pool, BlockType type, const void* weights,
                              uint64_t experts, uint64_t rows, uint64_t k, const float* x,
                              uint64_t x_rows, uint64_t x_stride, uint64_t uses,
                              const int32_t* expert_of, float* y, uint64_t y_stride);
// The same with activations that were rounded before: x.rows rows for `uses` rows of y each.
void quantised_expert_product(ThreadPool& pool, const QuantisedWeights& one, uint64_t experts,
                              const ActivationsView& x, uint64_t uses, const int32_t* expert_of,
                              float* y, uint64_t y_stride);

// The product with the kernels of one instruction set, which the processor must have.
void quantised_product_with(const QuantisedKernels& kernels, ThreadPool& pool,
                            const QuantisedWeights& weights, const ActivationsView& x, float* y,
                            uint64_t y_stride);

}  // namespace prism::cpu
