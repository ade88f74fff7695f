// Shared by the files of matrix products: stored operands, and the paths that do not pack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/system/thread_pool.h"
#include "cpu/elementwise_parts.h"
#include "prism/dtype.h"

namespace prism::cpu {

// Multiplications below which threads cost more than they gain (about 20 microseconds of one).
inline constexpr size_t kWorthThreads = size_t{1} << 20;
// Up to this many rows, dot products with unpacked b are faster than packing it.
inline constexpr size_t kFewRows = 16;

// A matrix in memory.
struct MatmulOperand {
  DType type;
  const void* data;
  size_t stride;    // row stride in elements, as stored
  bool transposed;  // stored transposed
};

// Elements of one stored row from (row, column) on, as T: a pointer to the data itself if the type
// matches, else converted into `scratch`.
template <class T>
inline const T* row_of(const MatmulOperand& x, size_t row, size_t column, size_t count,
                       T* scratch) {
  const size_t offset = row * x.stride + column;
  if constexpr (std::is_same_v<T, float>) {
    const uint16_t* bits = static_cast<const uint16_t*>(x.data) + offset;
    if (x.type == DType::f16) {
      f32_from_f16(bits, scratch, count);
      return scratch;
    }
    if (x.type == DType::bf16) {
      f32_from_bf16(bits, scratch, count);
      return scratch;
    }
  }
  return static_cast<const T*>(x.data) + offset;
}

// Product with one row; or with one column, with the operands swapped. c has n elements with stride
// `c_stride`; x is the single row (or column) of k elements.
template <class T>
void multiply_vector(ThreadPool& pool, size_t n, size_t k, const MatmulOperand& x, bool x_is_row,
                     const MatmulOperand& b, T* c, size_t c_stride, T beta);

// Product with up to kFewRows rows, for b stored as [n][k].
template <class T>
void multiply_few_rows(ThreadPool& pool, size_t m, size_t n, size_t k, const MatmulOperand& a,
                       const MatmulOperand& b, T* c, size_t ldc, T beta);

}  // namespace prism::cpu
