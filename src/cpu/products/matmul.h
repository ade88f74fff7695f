// Dense matrix products: packed, blocked for caches and registers, multi-threaded.
#pragma once

#include <cstddef>
#include <functional>

#include "base/system/thread_pool.h"
#include "prism/dtype.h"

namespace prism::cpu {

// Called for each part of c when it is complete, by the thread that computed it: rows [row, row +
// rows), columns [column, column + columns). An epilogue then finds its elements in the cache.
using MatmulDone = std::function<void(size_t row, size_t rows, size_t column, size_t columns)>;

// c = a b + beta c, all row-major. a is [m][k] with row stride lda in elements, or stored as [k][m]
// if transpose_a; b is [k][n], or stored as [n][k] if transpose_b; c is [m][n]. With beta 0, c is
// only written.
void matmul_f32(ThreadPool& pool, size_t m, size_t n, size_t k, const float* a, size_t lda,
                bool transpose_a, const float* b, size_t ldb, bool transpose_b, float* c,
                size_t ldc, float beta = 0);
void matmul_f64(ThreadPool& pool, size_t m, size_t n, size_t k, const double* a, size_t lda,
                bool transpose_a, const double* b, size_t ldb, bool transpose_b, double* c,
                size_t ldc, double beta = 0);

// The same with f32, f16 or bf16 operands, converted during packing; products and sums are f32.
// Throws Error for other types.
void matmul(ThreadPool& pool, size_t m, size_t n, size_t k, DType a_type, const void* a, size_t lda,
            bool transpose_a, DType b_type, const void* b, size_t ldb, bool transpose_b, float* c,
            size_t ldc, float beta = 0, const MatmulDone* done = nullptr);

}  // namespace prism::cpu
