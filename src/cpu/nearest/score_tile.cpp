// Vectorised tiles of products, squared differences and bit counts.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

#include "cpu/elementwise.h"
#include "cpu/nearest/score_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/nearest/score_tile.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Four rows by four queries: 16 sums, which fill half of the registers of AVX-512. Each loaded
// vector is used four times, so that the multiplications, not the loads, are the limit.
constexpr size_t kRows = 4;

template <bool kDifference>
HWY_INLINE V add_term(V x, V y, V sum) {
  if constexpr (kDifference) {
    const V difference = hn::Sub(x, y);
    return hn::MulAdd(difference, difference, sum);
  } else {
    return hn::MulAdd(x, y, sum);
  }
}

// One block of kRows rows, `stride` floats apart, with kQueries queries. The compiler unrolls the
// loops over the arrays, which become registers.
template <bool kDifference, size_t kQueries>
HWY_INLINE void score_block(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, size_t stride,
                            size_t rows, size_t width, float* HWY_RESTRICT out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const float* at[kRows];
  for (size_t r = 0; r < kRows; ++r) at[r] = y + std::min(r, rows - 1) * stride;
  V s00 = hn::Zero(d), s01 = s00, s02 = s00, s03 = s00, s10 = s00, s11 = s00, s12 = s00, s13 = s00;
  V s20 = s00, s21 = s00, s22 = s00, s23 = s00, s30 = s00, s31 = s00, s32 = s00, s33 = s00;
  const auto step = [&](V y0, V y1, V y2, V y3, auto query) HWY_ATTR {
    const V x0 = query(0);
    s00 = add_term<kDifference>(x0, y0, s00);
    s01 = add_term<kDifference>(x0, y1, s01);
    s02 = add_term<kDifference>(x0, y2, s02);
    s03 = add_term<kDifference>(x0, y3, s03);
    if constexpr (kQueries > 1) {
      const V x1 = query(1);
      s10 = add_term<kDifference>(x1, y0, s10);
      s11 = add_term<kDifference>(x1, y1, s11);
      s12 = add_term<kDifference>(x1, y2, s12);
      s13 = add_term<kDifference>(x1, y3, s13);
    }
    if constexpr (kQueries > 2) {
      const V x2 = query(2), x3 = query(3);
      s20 = add_term<kDifference>(x2, y0, s20);
      s21 = add_term<kDifference>(x2, y1, s21);
      s22 = add_term<kDifference>(x2, y2, s22);
      s23 = add_term<kDifference>(x2, y3, s23);
      s30 = add_term<kDifference>(x3, y0, s30);
      s31 = add_term<kDifference>(x3, y1, s31);
      s32 = add_term<kDifference>(x3, y2, s32);
      s33 = add_term<kDifference>(x3, y3, s33);
    }
  };
  size_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    step(hn::LoadU(d, at[0] + i), hn::LoadU(d, at[1] + i), hn::LoadU(d, at[2] + i),
         hn::LoadU(d, at[3] + i),
         [&](size_t q) HWY_ATTR { return hn::LoadU(d, x + q * width + i); });
  }
  if (i < width) {
    const size_t rest = width - i;
    step(load_some(d, at[0] + i, rest), load_some(d, at[1] + i, rest),
         load_some(d, at[2] + i, rest), load_some(d, at[3] + i, rest),
         [&](size_t q) HWY_ATTR { return load_some(d, x + q * width + i, rest); });
  }
  const auto write = [&](size_t q, V a, V b, V c, V e) HWY_ATTR {
    const float sums[kRows] = {hn::GetLane(hn::SumOfLanes(d, a)), hn::GetLane(hn::SumOfLanes(d, b)),
                               hn::GetLane(hn::SumOfLanes(d, c)),
                               hn::GetLane(hn::SumOfLanes(d, e))};
    std::copy(sums, sums + rows, out + q * kTileRows);
  };
  write(0, s00, s01, s02, s03);
  if constexpr (kQueries > 1) write(1, s10, s11, s12, s13);
  if constexpr (kQueries > 2) {
    write(2, s20, s21, s22, s23);
    write(3, s30, s31, s32, s33);
  }
}

template <bool kDifference>
void score_rows(const float* x, size_t queries, const float* y, size_t rows, size_t width,
                float* out) {
  size_t q = 0;
  // The processor's prefetcher stops at the end of a page of 4 KB. With few queries the memory is
  // the limit, and each page would begin with the whole latency.
  constexpr size_t kAheadBytes = 4096, kLine = 64;
  const bool prefetches = queries <= 2;
  const auto block = [&](auto count) HWY_ATTR {
    for (size_t r = 0; r < rows; r += kRows) {
      if (prefetches) {
        const char* const ahead = reinterpret_cast<const char*>(y + r * width) + kAheadBytes;
        for (size_t at = 0; at < kRows * width * sizeof(float); at += kLine)
          __builtin_prefetch(ahead + at);
      }
      score_block<kDifference, decltype(count)::value>(x + q * width, y + r * width, width,
                                                       std::min(kRows, rows - r), width,
                                                       out + q * kTileRows + r);
    }
    q += decltype(count)::value;
  };
  while (q + 4 <= queries) block(std::integral_constant<size_t, 4>());
  while (q + 2 <= queries) block(std::integral_constant<size_t, 2>());
  while (q < queries) block(std::integral_constant<size_t, 1>());
}

void ScoreProducts(const float* x, size_t queries, const float* y, size_t rows, size_t width,
                   float* out) {
  score_rows<false>(x, queries, y, rows, width, out);
}
void ScoreDifferences(const float* x, size_t queries, const float* y, size_t rows, size_t width,
                      float* out) {
  score_rows<true>(x, queries, y, rows, width, out);
}

void ScoreSquares(const float* y, size_t rows, size_t width, float* out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < rows; ++r, y += width) {
    V a = hn::Zero(d), b = a;
    size_t i = 0;
    for (; i + 2 * lanes <= width; i += 2 * lanes) {
      const V v = hn::LoadU(d, y + i), w = hn::LoadU(d, y + i + lanes);
      a = hn::MulAdd(v, v, a);
      b = hn::MulAdd(w, w, b);
    }
    for (; i < width; i += lanes) {
      const size_t rest = std::min(lanes, width - i);
      const V v = load_some(d, y + i, rest);
      a = hn::MulAdd(v, v, a);
    }
    out[r] = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  }
}

void ScoreBits(const uint8_t* x, const uint8_t* y, size_t rows, size_t bytes, float* out) {
  for (size_t r = 0; r < rows; ++r, y += bytes) {
    uint64_t total = 0;
    size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::ScalableTag<uint64_t> d;
    const hn::Repartition<uint8_t, decltype(d)> d8;
    auto sum = hn::Zero(d);
    for (; i + hn::Lanes(d8) <= bytes; i += hn::Lanes(d8)) {
      const auto different = hn::Xor(hn::LoadU(d8, x + i), hn::LoadU(d8, y + i));
      sum = hn::Add(sum, hn::PopulationCount(hn::BitCast(d, different)));
    }
    total = hn::GetLane(hn::SumOfLanes(d, sum));
#endif
    for (; i < bytes; ++i) total += static_cast<uint64_t>(std::popcount<uint8_t>(x[i] ^ y[i]));
    out[r] = static_cast<float>(total);
  }
}

using DD = hn::ScalableTag<double>;
using DH = hn::Rebind<float, DD>;

template <ExactSum kSum>
double SumTerms(const float* x, const float* y, double scale, size_t width) {
  const DD dd;
  const DH dh;
  const size_t lanes = hn::Lanes(dd);
  const auto factor = hn::Set(dd, scale);
  using VD = hn::Vec<DD>;
  const auto add = [&](hn::Vec<DH> from_x, hn::Vec<DH> from_y, VD& sum) HWY_ATTR {
    const VD a = hn::PromoteTo(dd, from_x), b = hn::Mul(factor, hn::PromoteTo(dd, from_y));
    const VD apart = hn::Sub(a, b);
    if constexpr (kSum == ExactSum::product)
      sum = hn::MulAdd(a, b, sum);
    else if constexpr (kSum == ExactSum::squares)
      sum = hn::MulAdd(b, b, sum);
    else
      sum = hn::MulAdd(apart, apart, sum);
  };
  // Four sums: one alone would wait for each addition.
  VD sum0 = hn::Zero(dd), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  size_t i = 0;
  for (; i + 4 * lanes <= width; i += 4 * lanes) {
    add(hn::LoadU(dh, x + i), hn::LoadU(dh, y + i), sum0);
    add(hn::LoadU(dh, x + i + lanes), hn::LoadU(dh, y + i + lanes), sum1);
    add(hn::LoadU(dh, x + i + 2 * lanes), hn::LoadU(dh, y + i + 2 * lanes), sum2);
    add(hn::LoadU(dh, x + i + 3 * lanes), hn::LoadU(dh, y + i + 3 * lanes), sum3);
  }
  for (; i < width; i += lanes) {
    const size_t rest = std::min(lanes, width - i);
    add(load_some(dh, x + i, rest), load_some(dh, y + i, rest), sum0);
  }
  return hn::GetLane(hn::SumOfLanes(dd, hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3))));
}

double SumExactly(ExactSum sum, const float* x, const float* y, double scale, size_t width) {
  if (sum == ExactSum::product) return SumTerms<ExactSum::product>(x, y, scale, width);
  if (sum == ExactSum::squares) return SumTerms<ExactSum::squares>(x, y, scale, width);
  return SumTerms<ExactSum::difference>(x, y, scale, width);
}

size_t FindAbove(const float* scores, float sign, size_t n, float threshold, uint32_t* indices) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V least = hn::Set(d, threshold), factor = hn::Set(d, sign);
  size_t found = 0;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto above = hn::Gt(hn::Mul(hn::LoadU(d, scores + i), factor), least);
    if (HWY_LIKELY(hn::AllFalse(d, above))) continue;
    for (size_t j = i; j < i + lanes; ++j)
      if (scores[j] * sign > threshold) indices[found++] = static_cast<uint32_t>(j);
  }
  for (; i < n; ++i)
    if (scores[i] * sign > threshold) indices[found++] = static_cast<uint32_t>(i);
  return found;
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {
namespace {

HWY_EXPORT(ScoreProducts);
HWY_EXPORT(ScoreDifferences);
HWY_EXPORT(ScoreSquares);
HWY_EXPORT(ScoreBits);
HWY_EXPORT(SumExactly);
HWY_EXPORT(FindAbove);

// Rows as f32: themselves, or converted into `room`, a few rows at a time.
constexpr size_t kRoom = 16 * 1024;  // floats; 64 KB, well inside the L2 cache

// Calls use(rows as f32, first row, number of rows) for parts of a tile.
template <class Use>
void with_floats(DType type, const void* y, const float* scales, size_t rows, size_t width,
                 const Use& use) {
  if (type == DType::f32 && !scales) return use(static_cast<const float*>(y), size_t{0}, rows);
  thread_local std::vector<float> room;
  const size_t each = std::clamp<size_t>(kRoom / std::max<size_t>(1, width), 4, rows);
  if (room.size() < each * width) room.resize(each * width);
  const size_t bytes = width * dtype_bytes(type);
  for (size_t first = 0; first < rows; first += each) {
    const size_t count = std::min(each, rows - first);
    load(type, static_cast<const std::byte*>(y) + first * bytes, 1, DType::f32, room.data(),
         count * width);
    if (scales)
      for (size_t r = 0; r < count; ++r)
        for (size_t i = 0; i < width; ++i) room[r * width + i] *= scales[first + r];
    use(room.data(), first, count);
  }
}

}  // namespace

void score_tile(bool difference, DType type, const float* x, size_t queries, const void* y,
                const float* scales, size_t rows, size_t width, float* out) {
  with_floats(type, y, difference ? scales : nullptr, rows, width,
              [&](const float* floats, size_t first, size_t count) {
                if (difference) HWY_DYNAMIC_DISPATCH(ScoreDifferences)
                (x, queries, floats, count, width, out + first);
                else HWY_DYNAMIC_DISPATCH(ScoreProducts)(x, queries, floats, count, width,
                                                         out + first);
              });
}

void square_tile(DType type, const void* y, size_t rows, size_t width, float* out) {
  with_floats(type, y, nullptr, rows, width, [&](const float* floats, size_t first, size_t count) {
    HWY_DYNAMIC_DISPATCH(ScoreSquares)(floats, count, width, out + first);
  });
}

void hamming_tile(const uint8_t* x, size_t queries, const uint8_t* y, size_t rows, size_t bytes,
                  float* out) {
  for (size_t q = 0; q < queries; ++q)
    HWY_DYNAMIC_DISPATCH(ScoreBits)(x + q * bytes, y, rows, bytes, out + q * kTileRows);
}

double exact_sum(ExactSum sum, DType type, const float* x, const void* y, double scale,
                 size_t width) {
  if (type == DType::f32)
    return HWY_DYNAMIC_DISPATCH(SumExactly)(sum, x, static_cast<const float*>(y), scale, width);
  thread_local std::vector<float> room;
  if (room.size() < width) room.resize(width);
  load(type, y, 1, DType::f32, room.data(), width);
  return HWY_DYNAMIC_DISPATCH(SumExactly)(sum, x, room.data(), scale, width);
}

size_t indices_above(const float* scores, float sign, size_t n, float threshold,
                     uint32_t* indices) {
  return HWY_DYNAMIC_DISPATCH(FindAbove)(scores, sign, n, threshold, indices);
}

}  // namespace prism::cpu
#endif
