// The inner loops of matrix products, for files compiled once per instruction set.

#if defined(PRISM_CPU_MATMUL_KERNELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PRISM_CPU_MATMUL_KERNELS_INL_H
#undef PRISM_CPU_MATMUL_KERNELS_INL_H
#else
#define PRISM_CPU_MATMUL_KERNELS_INL_H
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>
#include <utility>

#include "cpu/products/matmul_kernels.h"
#include "cpu/vector_loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Height of a register tile that is two vectors wide: leaves registers for two vectors of b and one
// of a. With AVX-512, 14 rows would fit but reach 92% of the speed of 12 on Zen 4.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
inline constexpr size_t kTileRows = 12;
#elif HWY_TARGET == HWY_AVX2
inline constexpr size_t kTileRows = 6;
#elif HWY_TARGET == HWY_NEON
inline constexpr size_t kTileRows = 12;
#else
inline constexpr size_t kTileRows = 4;
#endif

// Packed panels are aligned and contiguous, and ignore b_stride. With two possibly unaligned loads,
// g++ 12 spills one of them to memory.
template <class T, bool kPacked, size_t kRows>
HWY_NOINLINE void multiply_tile(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, size_t b_stride,
                                size_t columns, size_t depth, T* HWY_RESTRICT c, size_t ldc,
                                T scale) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V sums[kRows][2];
  // Fully unrolled: a loop that indexes the sums would keep them in memory.
  HWY_UNROLL(12)
  for (size_t r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = hn::Zero(d);
  // Prefetch the tile of c during the accumulation.
  for (size_t r = 0; r < kRows; ++r) {
    hwy::Prefetch(c + r * ldc);
    hwy::Prefetch(c + r * ldc + lanes);
  }
  for (size_t k = 0; k < depth; ++k) {
    const V b0 = kPacked ? hn::Load(d, b) : hn::LoadU(d, b);
    const V b1 = kPacked ? hn::Load(d, b + lanes) : hn::LoadU(d, b + lanes);
    b += kPacked ? 2 * lanes : b_stride;
    HWY_UNROLL(12)
    for (size_t r = 0; r < kRows; ++r) {
      const V x = hn::Set(d, a[r * kMatmulStride + k]);
      sums[r][0] = hn::MulAdd(x, b0, sums[r][0]);
      sums[r][1] = hn::MulAdd(x, b1, sums[r][1]);
    }
  }
  if (columns < 2 * lanes) {
    HWY_ALIGN T tile[kRows * 2 * HWY_MAX_BYTES / sizeof(T)];
    HWY_UNROLL(12)
    for (size_t r = 0; r < kRows; ++r) {
      hn::Store(sums[r][0], d, tile + 2 * r * lanes);
      hn::Store(sums[r][1], d, tile + (2 * r + 1) * lanes);
    }
    for (size_t r = 0; r < kRows; ++r)
      for (size_t j = 0; j < columns; ++j) {
        const T sum = tile[2 * r * lanes + j];
        c[r * ldc + j] = scale == T(0) ? sum : sum + scale * c[r * ldc + j];
      }
  } else if (scale == T(0)) {
    HWY_UNROLL(12)
    for (size_t r = 0; r < kRows; ++r) {
      hn::StoreU(sums[r][0], d, c + r * ldc);
      hn::StoreU(sums[r][1], d, c + r * ldc + lanes);
    }
  } else {
    const V factor = hn::Set(d, scale);
    HWY_UNROLL(12)
    for (size_t r = 0; r < kRows; ++r) {
      T* to = c + r * ldc;
      hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, to), sums[r][0]), d, to);
      hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, to + lanes), sums[r][1]), d, to + lanes);
    }
  }
}

template <class T>
using TileFunction = void (*)(const T*, const T*, size_t, size_t, size_t, T*, size_t, T);

template <class T, bool kPacked, size_t... kRows>
HWY_INLINE TileFunction<T> tile_of(size_t rows, std::index_sequence<kRows...>) {
  static constexpr TileFunction<T> kFunctions[] = {multiply_tile<T, kPacked, kRows + 1>...};
  return kFunctions[rows - 1];
}

// Column j of b, the first of a panel, starts at b + j * panel.
template <bool kPacked, class T>
HWY_INLINE void multiply_panels(const T* a, size_t rows, const T* b, size_t b_stride, size_t panel,
                                size_t columns, size_t depth, T* c, size_t ldc, T scale) {
  const size_t width = 2 * hn::Lanes(hn::ScalableTag<T>());
  // Tiles of nearly equal height: 14 rows are split into 7 and 7, not 12 and 2.
  const size_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (size_t tile = 0; tile < tiles; ++tile) {
    const size_t first = rows * tile / tiles, last = rows * (tile + 1) / tiles;
    const auto function = tile_of<T, kPacked>(last - first, std::make_index_sequence<kTileRows>());
    for (size_t j = 0; j < columns; j += width)
      function(a + first * kMatmulStride, b + j * panel, b_stride, HWY_MIN(width, columns - j),
               depth, c + first * ldc + j, ldc, scale);
  }
}

template <class T>
void multiply_block(const T* a, size_t rows, const T* b, size_t columns, size_t depth, T* c,
                    size_t ldc, T scale) {
  const size_t width = 2 * hn::Lanes(hn::ScalableTag<T>());
  multiply_panels<true>(a, rows, b, width, depth, columns, depth, c, ldc, scale);
}

template <class T>
void multiply_in_place(const T* a, size_t rows, const T* b, size_t b_stride, size_t columns,
                       size_t depth, T* c, size_t ldc, T scale) {
  multiply_panels<false>(a, rows, b, b_stride, size_t{1}, columns, depth, c, ldc, scale);
}

// In 4 x 4 blocks with 128-bit vectors, four below each other, which fill a cache line of the
// result; f64 uses plain moves, which are fast enough.
template <class T>
void transpose(const T* from, size_t from_stride, size_t rows, size_t columns, T* to,
               size_t to_stride) {
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    const hn::FixedTag<T, 4> d;
    const hn::Repartition<double, decltype(d)> dd;
    const size_t whole = rows / 4 * 4;
    for (size_t last = 0; i < whole; i = last) {
      last = HWY_MIN(i + 16, whole);
      size_t j = 0;
      for (; j + 4 <= columns; j += 4) {
        T* out = to + j * to_stride + i;
        for (const T* in = from + i * from_stride + j, *end = from + last * from_stride + j;
             in != end; in += 4 * from_stride, out += 4) {
          const auto r0 = hn::LoadU(d, in), r1 = hn::LoadU(d, in + from_stride);
          const auto r2 = hn::LoadU(d, in + 2 * from_stride);
          const auto r3 = hn::LoadU(d, in + 3 * from_stride);
          const auto low01 = hn::BitCast(dd, hn::InterleaveLower(d, r0, r1));
          const auto low23 = hn::BitCast(dd, hn::InterleaveLower(d, r2, r3));
          const auto high01 = hn::BitCast(dd, hn::InterleaveUpper(d, r0, r1));
          const auto high23 = hn::BitCast(dd, hn::InterleaveUpper(d, r2, r3));
          hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, low01, low23)), d, out);
          hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, low01, low23)), d, out + to_stride);
          hn::StoreU(hn::BitCast(d, hn::InterleaveLower(dd, high01, high23)), d,
                     out + 2 * to_stride);
          hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(dd, high01, high23)), d,
                     out + 3 * to_stride);
        }
      }
      for (; j < columns; ++j)
        for (size_t r = i; r < last; ++r) to[j * to_stride + r] = from[r * from_stride + j];
    }
  }
#endif
  for (; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
}

template <class T>
T dot(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, size_t n) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), s0);
    s1 = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, y + i + lanes), s1);
    s2 = hn::MulAdd(hn::LoadU(d, x + i + 2 * lanes), hn::LoadU(d, y + i + 2 * lanes), s2);
    s3 = hn::MulAdd(hn::LoadU(d, x + i + 3 * lanes), hn::LoadU(d, y + i + 3 * lanes), s3);
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), s0);
  if (i < n) s1 = hn::MulAdd(load_some(d, x + i, n - i), load_some(d, y + i, n - i), s1);
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

// out[i] = the sum of the lanes of vector i. For f32, reduces all four vectors together.
template <class D, class V = hn::Vec<D>, class T = hn::TFromD<D>>
HWY_INLINE void sums_of_lanes(D d, V s0, V s1, V s2, V s3, T* out) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    const hn::Repartition<double, D> dd;
    const V s01 = hn::Add(hn::InterleaveLower(d, s0, s1), hn::InterleaveUpper(d, s0, s1));
    const V s23 = hn::Add(hn::InterleaveLower(d, s2, s3), hn::InterleaveUpper(d, s2, s3));
    const auto p = hn::BitCast(dd, s01), q = hn::BitCast(dd, s23);
    const V sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(dd, p, q)),
                           hn::BitCast(d, hn::InterleaveUpper(dd, p, q)));
    // Each block of four lanes now holds partial sums of the four vectors.
#if HWY_CAP_GE512
    const hn::Half<D> half;
    const hn::Half<decltype(half)> quarter;
    const auto two = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    hn::StoreU(hn::Add(hn::LowerHalf(quarter, two), hn::UpperHalf(quarter, two)), quarter, out);
#elif HWY_CAP_GE256
    const hn::Half<D> half;
    hn::StoreU(hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums)), half, out);
#else
    hn::StoreU(sums, d, out);
#endif
    return;
  }
#endif
  out[0] = hn::GetLane(hn::SumOfLanes(d, s0));
  out[1] = hn::GetLane(hn::SumOfLanes(d, s1));
  out[2] = hn::GetLane(hn::SumOfLanes(d, s2));
  out[3] = hn::GetLane(hn::SumOfLanes(d, s3));
}

template <class T, size_t kRows>
HWY_INLINE void dots_tile(const T* HWY_RESTRICT x, const T* HWY_RESTRICT y, size_t stride, size_t n,
                          T* HWY_RESTRICT out, size_t out_stride) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  const T *y1 = y + stride, *y2 = y + 2 * stride, *y3 = y + 3 * stride;
  V sums[kRows][4];
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r)
    sums[r][0] = sums[r][1] = sums[r][2] = sums[r][3] = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V v0 = hn::LoadU(d, y + i), v1 = hn::LoadU(d, y1 + i);
    const V v2 = hn::LoadU(d, y2 + i), v3 = hn::LoadU(d, y3 + i);
    HWY_UNROLL(4)
    for (size_t r = 0; r < kRows; ++r) {
      const V u = hn::LoadU(d, x + r * n + i);
      sums[r][0] = hn::MulAdd(u, v0, sums[r][0]);
      sums[r][1] = hn::MulAdd(u, v1, sums[r][1]);
      sums[r][2] = hn::MulAdd(u, v2, sums[r][2]);
      sums[r][3] = hn::MulAdd(u, v3, sums[r][3]);
    }
  }
  HWY_UNROLL(4)
  for (size_t r = 0; r < kRows; ++r)
    sums_of_lanes(d, sums[r][0], sums[r][1], sums[r][2], sums[r][3], out + r * out_stride);
  for (; i < n; ++i)
    for (size_t r = 0; r < kRows; ++r) {
      const T u = x[r * n + i];
      T* to = out + r * out_stride;
      to[0] += u * y[i];
      to[1] += u * y1[i];
      to[2] += u * y2[i];
      to[3] += u * y3[i];
    }
}

// A 4 x 4 block of sums fills 16 registers, which needs an instruction set with 32.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_NEON
inline constexpr size_t kDotRows = 4;
#else
inline constexpr size_t kDotRows = 2;
#endif

template <class T>
void dots(const T* x, size_t rows, const T* y, size_t stride, size_t count, size_t n, T* out,
          size_t out_stride) {
  size_t j = 0;
  for (; j + 4 <= count; j += 4, y += 4 * stride) {
    size_t r = 0;
    for (; r + kDotRows <= rows; r += kDotRows)
      dots_tile<T, kDotRows>(x + r * n, y, stride, n, out + r * out_stride + j, out_stride);
    for (; r < rows; ++r) dots_tile<T, 1>(x + r * n, y, stride, n, out + r * out_stride + j, 0);
  }
  for (; j < count; ++j, y += stride)
    for (size_t r = 0; r < rows; ++r) out[r * out_stride + j] = dot(x + r * n, y, n);
}

template <class T>
void dot4(const T* x, const T* y, size_t stride, size_t n, T* out) {
  dots_tile<T, 1>(x, y, stride, n, out, 0);
}

template <class T>
void add4(const T* x, const T* HWY_RESTRICT rows, size_t stride, T* HWY_RESTRICT y, size_t n) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  const auto x0 = hn::Set(d, x[0]), x1 = hn::Set(d, x[1]);
  const auto x2 = hn::Set(d, x[2]), x3 = hn::Set(d, x[3]);
  const T *r1 = rows + stride, *r2 = rows + 2 * stride, *r3 = rows + 3 * stride;
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto sum = hn::MulAdd(x0, hn::LoadU(d, rows + j), hn::LoadU(d, y + j));
    sum = hn::MulAdd(x1, hn::LoadU(d, r1 + j), sum);
    sum = hn::MulAdd(x2, hn::LoadU(d, r2 + j), sum);
    hn::StoreU(hn::MulAdd(x3, hn::LoadU(d, r3 + j), sum), d, y + j);
  }
  for (; j < n; ++j) y[j] += x[0] * rows[j] + x[1] * r1[j] + x[2] * r2[j] + x[3] * r3[j];
}

template <class T>
void add(T x, const T* HWY_RESTRICT row, T* HWY_RESTRICT y, size_t n) {
  for (size_t j = 0; j < n; ++j) y[j] += x * row[j];
}

template <class T>
HWY_INLINE MatmulKernels<T> kernels() {
  return {kTileRows,         2 * hn::Lanes(hn::ScalableTag<T>()),
          multiply_block<T>, multiply_in_place<T>,
          transpose<T>,      dot4<T>,
          dots<T>,           dot<T>,
          add4<T>,           add<T>};
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
