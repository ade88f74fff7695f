// Vectorised steps of attention over single rows.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include <cstdint>
#include <cstring>
#include <limits>

#include "cpu/attention_rows.h"
#include "prism/dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/attention_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_loops_inl.h"
#include "cpu/vector_math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct Capped {
  float scale, cap;
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(hn::Set(d, cap), tanh_f32(d, hn::Mul(x, hn::Set(d, scale / cap))));
  }
};
struct Scaled {
  float scale;
  HWY_INLINE V operator()(D d, V x) const { return hn::Mul(x, hn::Set(d, scale)); }
};
struct Plus {
  HWY_INLINE V operator()(D, V a, V b) const { return hn::Add(a, b); }
};
struct Weight {
  float largest;
  HWY_INLINE V operator()(D d, V x) const { return exp_f32(d, hn::Sub(x, hn::Set(d, largest))); }
};

struct ScoreSlope {
  float total, scale;
  HWY_INLINE V operator()(D d, V weight, V slope) const {
    return hn::Mul(hn::Mul(weight, hn::Sub(slope, hn::Set(d, total))), hn::Set(d, scale));
  }
};

float FinishScores(float* scores, size_t n, float scale, float soft_cap, const float* mask) {
  const D d;
  if (soft_cap > 0)
    map(d, d, scores, scores, n, Capped{scale, soft_cap});
  else
    map(d, d, scores, scores, n, Scaled{scale});
  if (mask) map(d, d, scores, mask, scores, n, Plus());
  const size_t lanes = hn::Lanes(d);
  V best = hn::Set(d, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) best = hn::Max(best, hn::LoadU(d, scores + i));
  float largest = largest_lane(d, best);
  for (; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;
  return largest;
}

float WeightsOfScores(float* scores, size_t n, float largest) {
  const D d;
  map(d, d, scores, scores, n, Weight{largest});
  const size_t lanes = hn::Lanes(d);
  V sum = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) sum = hn::Add(sum, hn::LoadU(d, scores + i));
  if (i < n) sum = hn::Add(sum, load_some(d, scores + i, n - i));
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

void ScaleRow(float* x, size_t n, float factor) { map(D(), D(), x, x, n, Scaled{factor}); }

void SlopesOfScores(const float* weights, float* slopes, size_t n, float total, float scale) {
  map(D(), D(), weights, slopes, slopes, n, ScoreSlope{total, scale});
}

void F32FromQ80(const void* blocks, float* to, size_t n) {
  const uint8_t* from = static_cast<const uint8_t*>(blocks);
  for (size_t block = 0; block < n / 32; ++block, from += 34, to += 32) {
    uint16_t bits;
    std::memcpy(&bits, from, 2);
    const float factor = prism::f32_from_f16(bits);
    const int8_t* quants = reinterpret_cast<const int8_t*>(from + 2);
#if HWY_TARGET != HWY_SCALAR
    const D d;
    const hn::RebindToSigned<D> di;
    const hn::Rebind<int8_t, D> d8;
    for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
      const auto wide = hn::PromoteTo(di, hn::LoadU(d8, quants + i));
      hn::StoreU(hn::Mul(hn::ConvertTo(d, wide), hn::Set(d, factor)), d, to + i);
    }
#else
    for (size_t i = 0; i < 32; ++i) to[i] = static_cast<float>(quants[i]) * factor;
#endif
  }
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(FinishScores);
HWY_EXPORT(WeightsOfScores);
HWY_EXPORT(SlopesOfScores);
HWY_EXPORT(ScaleRow);
HWY_EXPORT(F32FromQ80);

float finish_scores(float* scores, size_t n, float scale, float soft_cap, const float* mask) {
  return HWY_DYNAMIC_DISPATCH(FinishScores)(scores, n, scale, soft_cap, mask);
}
float weights_of_scores(float* scores, size_t n, float largest) {
  return HWY_DYNAMIC_DISPATCH(WeightsOfScores)(scores, n, largest);
}
void slopes_of_scores(const float* weights, float* slopes, size_t n, float total, float scale) {
  HWY_DYNAMIC_DISPATCH(SlopesOfScores)(weights, slopes, n, total, scale);
}
void scale_row(float* x, size_t n, float factor) { HWY_DYNAMIC_DISPATCH(ScaleRow)(x, n, factor); }
void f32_from_q8_0(const void* blocks, float* to, size_t n) {
  HWY_DYNAMIC_DISPATCH(F32FromQ80)(blocks, to, n);
}

}  // namespace prism::cpu
#endif
