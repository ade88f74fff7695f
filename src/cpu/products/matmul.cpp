// Splits matrix products into tiles for threads and packs operands for the caches; products with
// few rows take separate paths.
#include "cpu/products/matmul.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "cpu/highway_config.h"
#include "cpu/products/matmul_kernels.h"
#include "cpu/products/matmul_operand.h"
#include "prism/error.h"
// Highway after its configuration.
#include <hwy/aligned_allocator.h>

namespace prism::cpu {
namespace {

// A tile covers 8 panels of b: 384 x 256 f32 with AVX-512, which is 400 KB of L2 cache.
constexpr size_t kPanels = 8;
// Rows of a packed at once: a multiple of the tile height of every instruction set, 96 KB.
constexpr size_t kGroupRows = 60;
// Elements of c that a thread passes on at once where a product has no tiles.
constexpr size_t kDoneElements = 16384;

// Per-thread buffers, kept between products.
template <class T>
struct Scratch {
  hwy::AlignedFreeUniquePtr<T[]> a, b, rows;
  size_t b_elements = 0;

  static Scratch& of_thread(size_t b_needed) {
    static thread_local Scratch scratch;
    if (!scratch.a) {
      scratch.a = hwy::AllocateAligned<T>(kGroupRows * kMatmulStride);
      scratch.rows = hwy::AllocateAligned<T>(kMatmulDepth * kGroupRows);
    }
    if (scratch.b_elements < b_needed) {
      scratch.b = hwy::AllocateAligned<T>(b_needed);
      scratch.b_elements = scratch.b ? b_needed : 0;
    }
    if (!scratch.a || !scratch.rows || !scratch.b)
      throw Error(ErrorCode::kOutOfMemory, "matmul: no memory to pack " +
                                               std::to_string(b_needed * sizeof(T)) +
                                               " bytes of an operand");
    return scratch;
  }
};

// Transposes the stored block [rows][columns] at (row, column): to[j][i] = x[i][j].
template <class T>
void pack_turned(const MatmulKernels<T>& kernels, const MatmulOperand& x, size_t row, size_t column,
                 size_t rows, size_t columns, T* to, size_t to_stride, T* scratch) {
  if (x.type == DType::f32 || x.type == DType::f64) {
    kernels.transpose(row_of<T>(x, row, column, columns, nullptr), x.stride, rows, columns, to,
                      to_stride);
    return;
  }
  // Converted with stride `columns`, as many rows at a time as the scratch holds.
  const size_t most = kMatmulDepth * kGroupRows / columns;
  for (size_t done = 0; done < rows; done += most) {
    const size_t count = std::min(most, rows - done);
    for (size_t i = 0; i < count; ++i)
      row_of(x, row + done + i, column, columns, scratch + i * columns);
    kernels.transpose(scratch, columns, count, columns, to + done, to_stride);
  }
}

// Packs rows [row, row + rows) and columns [k0, k0 + depth) of a.
template <class T>
void pack_a(const MatmulKernels<T>& kernels, const MatmulOperand& a, size_t row, size_t rows,
            size_t k0, size_t depth, Scratch<T>& scratch) {
  T* to = scratch.a.get();
  if (a.transposed) {
    pack_turned(kernels, a, k0, row, depth, rows, to, kMatmulStride, scratch.rows.get());
    return;
  }
  for (size_t i = 0; i < rows; ++i, to += kMatmulStride) {
    const T* from = row_of(a, row + i, k0, depth, to);
    if (from != to) std::memcpy(to, from, depth * sizeof(T));
  }
}

// Packs rows [k0, k0 + depth) and columns [column, column + columns) of b into panels
// [depth][width]; a narrow last panel is padded with zeros.
template <class T>
void pack_b(const MatmulKernels<T>& kernels, const MatmulOperand& b, size_t column, size_t columns,
            size_t k0, size_t depth, Scratch<T>& scratch) {
  const size_t width = kernels.columns;
  T* const packed = scratch.b.get();
  const size_t whole = columns / width * width;
  if (whole < columns) std::fill_n(packed + whole * depth, width * depth, T(0));
  if (b.transposed) {
    for (size_t j = 0; j < columns; j += width)
      pack_turned(kernels, b, column + j, k0, std::min(width, columns - j), depth,
                  packed + j * depth, width, scratch.rows.get());
    return;
  }
  for (size_t k = 0; k < depth; ++k) {
    const T* from = row_of(b, k0 + k, column, columns, scratch.rows.get());
    T* to = packed + k * width;
    size_t j = 0;
    for (; j < whole; j += width) std::memcpy(to + j * depth, from + j, width * sizeof(T));
    std::copy(from + j, from + columns, to + j * depth);
  }
}

// Computes c[rows][columns] at (row, column) over all of k.
template <class T>
void multiply_tile(const MatmulKernels<T>& kernels, const MatmulOperand& a, const MatmulOperand& b,
                   size_t row, size_t rows, size_t column, size_t columns, size_t k, T* c,
                   size_t ldc, T beta, const MatmulDone* done) {
  const size_t width = kernels.columns;
  Scratch<T>& scratch = Scratch<T>::of_thread(kMatmulDepth * kPanels * width);
  const size_t blocks = (k + kMatmulDepth - 1) / kMatmulDepth;
  for (size_t block = 0; block < blocks; ++block) {
    const size_t k0 = k * block / blocks, depth = k * (block + 1) / blocks - k0;
    pack_b(kernels, b, column, columns, k0, depth, scratch);
    for (size_t i = 0; i < rows; i += kGroupRows) {
      const size_t count = std::min(kGroupRows, rows - i);
      pack_a(kernels, a, row + i, count, k0, depth, scratch);
      kernels.multiply(scratch.a.get(), count, scratch.b.get(), columns, depth,
                       c + (row + i) * ldc + column, ldc, block == 0 ? beta : T(1));
      if (done && block + 1 == blocks) (*done)(row + i, count, column, columns);
    }
  }
}

template <class T>
void scale_rows(size_t m, size_t n, T* c, size_t ldc, T beta) {
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) c[i * ldc + j] = beta == T(0) ? T(0) : c[i * ldc + j] * beta;
}

// Products with few rows or columns; false for the others.
template <class T>
bool multiply_few(ThreadPool& pool, size_t m, size_t n, size_t k, const MatmulOperand& a,
                  const MatmulOperand& b, T* c, size_t ldc, T beta) {
  if (k == 0) {
    scale_rows(m, n, c, ldc, beta);
  } else if (m == 1) {
    multiply_vector(pool, n, k, a, true, b, c, 1, beta);
  } else if (n == 1) {
    const MatmulOperand turned{a.type, a.data, a.stride, !a.transposed};
    multiply_vector(pool, m, k, b, false, turned, c, ldc, beta);
  } else if (m <= kFewRows && b.transposed) {
    multiply_few_rows(pool, m, n, k, a, b, c, ldc, beta);
  } else {
    return false;
  }
  return true;
}

template <class T>
void multiply(ThreadPool& pool, size_t m, size_t n, size_t k, const MatmulOperand& a,
              const MatmulOperand& b, T* c, size_t ldc, T beta, const MatmulDone* done = nullptr) {
  if (m == 0 || n == 0) return;
  if (multiply_few(pool, m, n, k, a, b, c, ldc, beta)) {
    if (done)
      pool.parallel_for(n, std::max<size_t>(1, kDoneElements / m),
                        [&](uint64_t first, uint64_t last) { (*done)(0, m, first, last - first); });
    return;
  }
  const MatmulKernels<T> kernels = matmul_kernels<T>();
  const size_t panels = (n + kernels.columns - 1) / kernels.columns;
  size_t across = (panels + kPanels - 1) / kPanels, down = 1;
  if (m * n * k >= kWorthThreads && pool.threads() > 1) {
    // At least two tiles per thread, for balance. A part more down packs all of b again and gives
    // `across` tiles; a part more across packs all of a again and gives `down` tiles. A transposed
    // operand takes about twice the time to pack.
    const size_t wanted = 2 * pool.threads();
    while (across * down < wanted) {
      const bool splits_rows = m / (down + 1) >= kGroupRows, splits_columns = panels > across;
      if (!splits_rows && !splits_columns) break;
      const size_t for_rows = n * (b.transposed ? 2 : 1) * down;
      const size_t for_columns = m * (a.transposed ? 2 : 1) * across;
      ++(splits_rows && (!splits_columns || for_rows <= for_columns) ? down : across);
    }
  }
  const auto work = [&](uint64_t first, uint64_t last) {
    for (uint64_t tile = first; tile < last; ++tile) {
      const size_t i = tile % down, j = tile / down;
      const size_t row = m * i / down, row_end = m * (i + 1) / down;
      const size_t column = panels * j / across * kernels.columns;
      const size_t column_end = std::min(n, panels * (j + 1) / across * kernels.columns);
      multiply_tile(kernels, a, b, row, row_end - row, column, column_end - column, k, c, ldc, beta,
                    done);
    }
  };
  const size_t tiles = across * down;
  pool.parallel_for(tiles, m * n * k < kWorthThreads ? tiles : 1, work);
}

void check_type(const char* side, DType type) {
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    throw Error(ErrorCode::kInvalidArgument, std::string("matmul on the CPU: the ") + side +
                                                 " operand is " + dtype_name(type) +
                                                 "; convert it to f32, f16 or bf16 first");
}

}  // namespace

void matmul_f32(ThreadPool& pool, size_t m, size_t n, size_t k, const float* a, size_t lda,
                bool transpose_a, const float* b, size_t ldb, bool transpose_b, float* c,
                size_t ldc, float beta) {
  multiply(pool, m, n, k, {DType::f32, a, lda, transpose_a}, {DType::f32, b, ldb, transpose_b}, c,
           ldc, beta);
}

void matmul_f64(ThreadPool& pool, size_t m, size_t n, size_t k, const double* a, size_t lda,
                bool transpose_a, const double* b, size_t ldb, bool transpose_b, double* c,
                size_t ldc, double beta) {
  multiply(pool, m, n, k, {DType::f64, a, lda, transpose_a}, {DType::f64, b, ldb, transpose_b}, c,
           ldc, beta);
}

void matmul(ThreadPool& pool, size_t m, size_t n, size_t k, DType a_type, const void* a, size_t lda,
            bool transpose_a, DType b_type, const void* b, size_t ldb, bool transpose_b, float* c,
            size_t ldc, float beta, const MatmulDone* done) {
  check_type("left", a_type);
  check_type("right", b_type);
  multiply(pool, m, n, k, {a_type, a, lda, transpose_a}, {b_type, b, ldb, transpose_b}, c, ldc,
           beta, done);
}

}  // namespace prism::cpu
