// Products of activations with block-quantised weights, using integer dot instructions.
#pragma once

#include <cstdint>

#include "base/system/thread_pool.h"
#include "cpu/products/quantised_activations.h"
#include "cpu/products/quantised_kernels.h"
#include "prism/element_type.h"

namespace prism::cpu {

// Up to this many activation rows, weights of this type are multiplied as they are read, and each
// row has the result that it has alone, bit for bit; beyond, unpacking them first is faster.
// Measured with cpu_products_bench on a Zen 4.
uint64_t few_rows(BlockType type);

// Weights in file layout: rows x k elements in whole blocks, rows contiguous.
struct QuantisedWeights {
  BlockType type;
  const void* data;
  uint64_t rows, k;
  uint64_t row_bytes() const { return ElementType(type).row_bytes(k); }
};

// y[i][r] = sum over e of x[i][e] * w[r][e], for x_rows rows of x with row stride x_stride in
// elements, and y with y_stride. x is quantised to 8 bits first (quantise_activations); otherwise
// the arithmetic is f32: integers within a block, floats between blocks. Throws Error if k is no
// multiple of the type's block, or if a stride is shorter than a row.
void quantised_product(ThreadPool& pool, BlockType type, const void* weights, uint64_t rows,
                       uint64_t k, const float* x, uint64_t x_rows, uint64_t x_stride, float* y,
                       uint64_t y_stride);

// The same with quantised activations, to share them between products of the same x. They must be
// quantised for weights with the same block size.
void quantised_product(ThreadPool& pool, const QuantisedWeights& weights, const ActivationsView& x,
                       float* y, uint64_t y_stride);

// Computes only weight rows first .. last - 1, at their places in y, on the calling thread: for
// callers that split the work themselves.
void quantised_product_rows(const QuantisedWeights& weights, uint64_t first, uint64_t last,
                            const ActivationsView& x, float* y, uint64_t y_stride);

// Rows routed to experts: the weights are `experts` contiguous matrices of rows x k. Row o of y,
// which has x_rows * uses rows, is row o / uses of x times matrix expert_of[o]. Throws Error for an
// expert that does not exist.
void quantised_expert_product(ThreadPool& pool, BlockType type, const void* weights,
                              uint64_t experts, uint64_t rows, uint64_t k, const float* x,
                              uint64_t x_rows, uint64_t x_stride, uint64_t uses,
                              const int32_t* expert_of, float* y, uint64_t y_stride);
// The same with quantised activations: each of the x.rows rows is used for `uses` rows of y.
void quantised_expert_product(ThreadPool& pool, const QuantisedWeights& one, uint64_t experts,
                              const ActivationsView& x, uint64_t uses, const int32_t* expert_of,
                              float* y, uint64_t y_stride);

// The product with the kernels of one instruction set, which the processor must support.
void quantised_product_with(const QuantisedKernels& kernels, ThreadPool& pool,
                            const QuantisedWeights& weights, const ActivationsView& x, float* y,
                            uint64_t y_stride);

}  // namespace prism::cpu
