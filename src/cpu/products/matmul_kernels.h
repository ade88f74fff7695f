// The inner loops of matrix products for the instruction set in use.
#pragma once

#include <cstddef>

namespace prism::cpu {

// The most of k that is packed at once, and the distance of packed rows of a: constant, so that a
// kernel finds all rows from one pointer, and not a power of two, so that they do not fall into the
// same set of the first cache. 12 rows take 19 of its 32 KB.
inline constexpr size_t kMatmulDepth = 384;
inline constexpr size_t kMatmulStride = kMatmulDepth + 16;

template <class T>
struct MatmulKernels {
  size_t rows;     // of a tile of registers, at most
  size_t columns;  // of a tile, and of a panel of packed b: [depth][columns]

  // c[i][j] = sum over k of a[i][k] b[k][j] + scale * c[i][j], for `rows` rows of packed a and
  // `columns` columns of packed panels. c is not read if scale is 0.
  void (*multiply)(const T* a, size_t rows, const T* b, size_t columns, size_t depth, T* c,
                   size_t ldc, T scale);
  // The same for b as it lies, rows `b_stride` apart; columns is a multiple of a panel's.
  void (*multiply_in_place)(const T* a, size_t rows, const T* b, size_t b_stride, size_t columns,
                            size_t depth, T* c, size_t ldc, T scale);
  // to[j][i] = from[i][j] for i < rows, j < columns.
  void (*transpose)(const T* from, size_t from_stride, size_t rows, size_t columns, T* to,
                    size_t to_stride);
  // out[j] = sum over i < n of x[i] y[j][i], for j < 4; y's rows are `stride` apart.
  void (*dot4)(const T* x, const T* y, size_t stride, size_t n, T* out);
  // out[i][j] = sum over l < n of x[i][l] y[j][l], for i < rows, j < count; rows of x are n apart.
  // For few rows: y is read once for every four of them.
  void (*dots)(const T* x, size_t rows, const T* y, size_t stride, size_t count, size_t n, T* out,
               size_t out_stride);
  T (*dot)(const T* x, const T* y, size_t n);
  // y[j] += sum over i < 4 of x[i] rows[i][j], for j < n; rows are `stride` apart.
  void (*add4)(const T* x, const T* rows, size_t stride, T* y, size_t n);
  void (*add)(T x, const T* row, T* y, size_t n);
};

template <class T>
MatmulKernels<T> matmul_kernels();
template <>
MatmulKernels<float> matmul_kernels<float>();
template <>
MatmulKernels<double> matmul_kernels<double>();

}  // namespace prism::cpu
