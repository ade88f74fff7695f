// Matrix products with one row, one column or a few rows. They are bound by reading the other
// operand, which is therefore read once, without packing.
#include <algorithm>
#include <vector>

#include "cpu/products/matmul_kernels.h"
#include "cpu/products/matmul_operand.h"

namespace prism::cpu {
namespace {

// y[j] = sum over i of x[i] b[i][j], j < n, for contiguous x and y.
template <class T>
void row_times_matrix(ThreadPool& pool, size_t n, size_t k, const T* x, const MatmulOperand& b,
                      T* y) {
  const MatmulKernels<T> kernels = matmul_kernels<T>();
  const bool plain = b.type == DType::f32 || b.type == DType::f64;
  constexpr size_t kPiece = 1024;
  const bool alone = n * k < kWorthThreads;
  if (b.transposed) {  // dot products of x with the rows of b
    const auto work = [&](uint64_t first, uint64_t last) {
      T converted[kPiece];
      size_t j = first;
      if (plain)
        for (; j + 4 <= last; j += 4)
          kernels.dot4(x, row_of<T>(b, j, 0, k, nullptr), b.stride, k, y + j);
      for (; j < last; ++j) {
        T sum = 0;
        for (size_t i = 0; i < k; i += kPiece) {
          const size_t count = std::min(kPiece, k - i);
          sum += kernels.dot(x + i, row_of(b, j, i, count, converted), count);
        }
        y[j] = sum;
      }
    };
    const size_t share = (n / (pool.threads() * 8) + 3) / 4 * 4;
    pool.parallel_for(n, alone ? n : std::max<size_t>(share, 4), work);
    return;
  }
  const auto work = [&](uint64_t first, uint64_t last) {
    T converted[4 * kPiece];
    for (size_t j = first; j < last; j += kPiece) {
      const size_t count = std::min<size_t>(kPiece, last - j);
      std::fill_n(y + j, count, T(0));
      size_t i = 0;
      for (; i + 4 <= k; i += 4) {
        const T* rows = row_of(b, i, j, count, converted);
        if (!plain)
          for (size_t r = 1; r < 4; ++r) row_of(b, i + r, j, count, converted + r * kPiece);
        kernels.add4(x + i, rows, plain ? b.stride : kPiece, y + j, count);
      }
      for (; i < k; ++i) kernels.add(x[i], row_of(b, i, j, count, converted), y + j, count);
    }
  };
  // Long stretches of each row, which the hardware prefetcher recognises as streams.
  const size_t share = (n / pool.threads() + 63) / 64 * 64;
  pool.parallel_for(n, alone ? n : std::clamp<size_t>(share, 64, kPiece), work);
}

// Depth of a block for few rows: 16 rows take 32 KB.
constexpr size_t kFewDepth = 512;
// Rows of b processed together: 64 KB of f32 if they are converted.
constexpr size_t kFewColumns = 32;

}  // namespace

template <class T>
void multiply_vector(ThreadPool& pool, size_t n, size_t k, const MatmulOperand& x, bool x_is_row,
                     const MatmulOperand& b, T* c, size_t c_stride, T beta) {
  std::vector<T> vector(k), result(n);
  if (x_is_row != x.transposed) {
    const T* from = row_of(x, 0, 0, k, vector.data());
    if (from != vector.data()) std::copy_n(from, k, vector.data());
  } else {
    for (size_t i = 0; i < k; ++i) vector[i] = *row_of(x, i, 0, 1, &vector[i]);
  }
  const bool direct = c_stride == 1 && beta == T(0);
  T* y = direct ? c : result.data();
  row_times_matrix(pool, n, k, vector.data(), b, y);
  if (direct) return;
  for (size_t j = 0; j < n; ++j)
    c[j * c_stride] = beta == T(0) ? y[j] : y[j] + beta * c[j * c_stride];
}

template <class T>
void multiply_few_rows(ThreadPool& pool, size_t m, size_t n, size_t k, const MatmulOperand& a,
                       const MatmulOperand& b, T* c, size_t ldc, T beta) {
  const MatmulKernels<T> kernels = matmul_kernels<T>();
  // Blocks [m][depth] of a, contiguous.
  std::vector<T> packed(m * k);
  for (size_t k0 = 0; k0 < k; k0 += kFewDepth) {
    const size_t depth = std::min(kFewDepth, k - k0);
    T* block = packed.data() + m * k0;
    for (size_t i = 0; i < m; ++i) {
      T* to = block + i * depth;
      if (a.transposed) {
        for (size_t l = 0; l < depth; ++l) to[l] = *row_of(a, k0 + l, i, 1, to + l);
      } else {
        const T* from = row_of(a, i, k0, depth, to);
        if (from != to) std::copy_n(from, depth, to);
      }
    }
  }
  const bool plain = b.type == DType::f32 || b.type == DType::f64;
  const auto work = [&](uint64_t first, uint64_t last) {
    std::vector<T> converted(plain ? 0 : kFewColumns * kFewDepth);
    T part[kFewRows * kFewColumns] = {}, sums[kFewRows * kFewColumns] = {};
    for (size_t j = first; j < last; j += kFewColumns) {
      const size_t columns = std::min<size_t>(kFewColumns, last - j);
      for (size_t k0 = 0; k0 < k; k0 += kFewDepth) {
        const size_t depth = std::min(kFewDepth, k - k0);
        const T* rows = row_of(b, j, k0, depth, converted.data());
        if (!plain)
          for (size_t r = 1; r < columns; ++r)
            row_of(b, j + r, k0, depth, converted.data() + r * depth);
        kernels.dots(packed.data() + m * k0, m, rows, plain ? b.stride : depth, columns, depth,
                     k0 == 0 ? sums : part, kFewColumns);
        if (k0 != 0)
          for (size_t i = 0; i < m * kFewColumns; ++i) sums[i] += part[i];
      }
      for (size_t i = 0; i < m; ++i)
        for (size_t r = 0; r < columns; ++r) {
          T& to = c[i * ldc + j + r];
          const T sum = sums[i * kFewColumns + r];
          to = beta == T(0) ? sum : sum + beta * to;
        }
    }
  };
  pool.parallel_for(n, m * n * k < kWorthThreads ? n : kFewColumns, work);
}

template void multiply_vector(ThreadPool&, size_t, size_t, const MatmulOperand&, bool,
                              const MatmulOperand&, float*, size_t, float);
template void multiply_vector(ThreadPool&, size_t, size_t, const MatmulOperand&, bool,
                              const MatmulOperand&, double*, size_t, double);
template void multiply_few_rows(ThreadPool&, size_t, size_t, size_t, const MatmulOperand&,
                                const MatmulOperand&, float*, size_t, float);
template void multiply_few_rows(ThreadPool&, size_t, size_t, size_t, const MatmulOperand&,
                                const MatmulOperand&, double*, size_t, double);

}  // namespace prism::cpu
