// The inner loops of matrix products for the instruction set in use.
#pragma once

#include <cstddef>

namespace prism::cpu {

// The largest depth (part of k) that is packed at once, and the stride of packed rows of a. The
// stride is constant, so that a kernel addresses all rows from one pointer, and not a power of two,
// so that rows map to different L1 sets. 12 rows take 19 of its 32 KB.
inline constexpr size_t kMatmulDepth = 384;
inline constexpr size_t kMatmulStride = kMatmulDepth + 16;

template <class T>
struct MatmulKernels {
  size_t rows;     // largest height of a register tile
  size_t columns;  // width of a tile and of a packed panel of b: [depth][columns]

  // c[i][j] = sum over k of a[i][k] b[k][j] + scale * c[i][j], for `rows` rows of packed a and
  // `columns` columns of packed panels. c is not read if scale is 0.
  void (*multiply)(const T* a, size_t rows, const T* b, size_t columns, size_t depth, T* c,
                   size_t ldc, T scale);
  // The same for unpacked b with row stride `b_stride`; columns is a multiple of the panel width.
  void (*multiply_in_place)(const T* a, size_t rows, const T* b, size_t b_stride, size_t columns,
                            size_t depth, T* c, size_t ldc, T scale);
  // to[j][i] = from[i][j] for i < rows, j < columns.
  void (*transpose)(const T* from, size_t from_stride, size_t rows, size_t columns, T* to,
                    size_t to_stride);
  // out[j] = sum over i < n of x[i] y[j][i], for j < 4; y has row stride `stride`.
  void (*dot4)(const T* x, const T* y, size_t stride, size_t n, T* out);
  // out[i][j] = sum over l < n of x[i][l] y[j][l], for i < rows, j < count; x has row stride n. For
  // few rows: y is read once per four of them.
  void (*dots)(const T* x, size_t rows, const T* y, size_t stride, size_t count, size_t n, T* out,
               size_t out_stride);
  T (*dot)(const T* x, const T* y, size_t n);
  // y[j] += sum over i < 4 of x[i] rows[i][j], for j < n; `rows` has row stride `stride`.
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
