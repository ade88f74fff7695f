// Vectorised distances between codes of i8.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include <algorithm>
#include <cmath>

#include "cpu/nearest/code_distance.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/nearest/code_distance.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Differences of i8 fit into i16, and pairs of their squares are summed into i32.
template <bool kProducts>
HWY_INLINE uint32_t compare(const int8_t* HWY_RESTRICT a, const int8_t* HWY_RESTRICT b,
                            size_t bytes) {
#if HWY_TARGET == HWY_SCALAR
  int64_t sum = 0;
  for (size_t i = 0; i < bytes; ++i) sum += kProducts ? a[i] * b[i] : (a[i] - b[i]) * (a[i] - b[i]);
  const auto total = static_cast<uint32_t>(sum);
#else
  // At most 32 lanes of i16, so that a unit of codes is whole vectors.
  const hn::CappedTag<int16_t, kCodeUnit> d16;
  const hn::Rebind<int8_t, decltype(d16)> d8;
  const hn::Repartition<int32_t, decltype(d16)> d32;
  auto sum = hn::Zero(d32), high = sum;
  for (size_t i = 0; i < bytes; i += hn::Lanes(d16)) {
    const auto x = hn::PromoteTo(d16, hn::LoadU(d8, a + i));
    const auto y = hn::PromoteTo(d16, hn::LoadU(d8, b + i));
    const auto apart = hn::Sub(x, y);
    sum = kProducts ? hn::ReorderWidenMulAccumulate(d32, x, y, sum, high)
                    : hn::ReorderWidenMulAccumulate(d32, apart, apart, sum, high);
  }
  const auto total = static_cast<uint32_t>(hn::GetLane(hn::SumOfLanes(d32, hn::Add(sum, high))));
#endif
  return kProducts ? (uint32_t{1} << 31) - total : total;
}

template <bool kProducts>
HWY_INLINE void compare_rows(const int8_t* query, const int8_t* codes, size_t bytes,
                             const uint32_t* rows, size_t count, uint32_t* out) {
  // Rows ahead of the loads hide the latency of memory; lines behind the first four come by the
  // processor's own prefetcher.
  constexpr size_t kAhead = 6, kLine = 64;
  const auto prefetch = [&](size_t i) {
    const int8_t* const at = codes + size_t{rows[i]} * bytes;
    for (size_t line = 0; line < std::min(bytes, 4 * kLine); line += kLine)
      __builtin_prefetch(at + line);
  };
  for (size_t i = 0; i < std::min(kAhead, count); ++i) prefetch(i);
  for (size_t i = 0; i < count; ++i) {
    if (i + kAhead < count) prefetch(i + kAhead);
    out[i] = compare<kProducts>(query, codes + size_t{rows[i]} * bytes, bytes);
  }
}

void CodeDistances(const int8_t* query, const int8_t* codes, size_t bytes, const uint32_t* rows,
                   size_t count, uint32_t* out) {
  compare_rows<false>(query, codes, bytes, rows, count, out);
}

void CodeProducts(const int8_t* query, const int8_t* codes, size_t bytes, const uint32_t* rows,
                  size_t count, uint32_t* out) {
  compare_rows<true>(query, codes, bytes, rows, count, out);
}

bool AnyNearer(const int8_t* code, const int8_t* codes, size_t bytes, const uint32_t* rows,
               size_t count, uint32_t limit) {
  for (size_t i = 0; i < count; ++i)
    if (compare<false>(code, codes + size_t{rows[i]} * bytes, bytes) < limit) return true;
  return false;
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {
namespace {
HWY_EXPORT(CodeDistances);
HWY_EXPORT(CodeProducts);
HWY_EXPORT(AnyNearer);
}  // namespace

void code_distances(const int8_t* query, const int8_t* codes, size_t bytes, const uint32_t* rows,
                    size_t count, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(CodeDistances)(query, codes, bytes, rows, count, out);
}

void code_products(const int8_t* query, const int8_t* codes, size_t bytes, const uint32_t* rows,
                   size_t count, uint32_t* out) {
  HWY_DYNAMIC_DISPATCH(CodeProducts)(query, codes, bytes, rows, count, out);
}

bool any_nearer(const int8_t* code, const int8_t* codes, size_t bytes, const uint32_t* rows,
                size_t count, uint32_t limit) {
  return HWY_DYNAMIC_DISPATCH(AnyNearer)(code, codes, bytes, rows, count, limit);
}

void encode(const float* from, const float* center, float factor, size_t width, int8_t* to) {
  for (size_t i = 0; i < width; ++i) {
    const float scaled = (from[i] - center[i]) * factor;
    // In this order of arguments NaN becomes -127.
    to[i] = static_cast<int8_t>(std::nearbyint(std::min(127.0f, std::max(-127.0f, scaled))));
  }
}

}  // namespace prism::cpu
#endif
