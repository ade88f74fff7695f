// Vectorised row functions for f32, with sums in f64 lanes.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_loops_inl.h"
#include "cpu/vector_math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
// f64 lanes, and equally many f32 lanes.
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;
using DH = hn::Rebind<float, DD>;

struct AsIs {
  HWY_INLINE VD operator()(VD x) const { return x; }
};
struct Squared {
  HWY_INLINE VD operator()(VD x) const { return hn::Mul(x, x); }
};
struct SquaredDifference {
  double mean;
  HWY_INLINE VD operator()(VD x) const {
    const VD difference = hn::Sub(x, hn::Set(DD(), mean));
    return hn::Mul(difference, difference);
  }
};

// The sum of f(x[i]). f is applied to whole vectors only, so it need not map 0 to 0.
template <class F>
HWY_INLINE double sum_of(const float* x, size_t n, F f) {
  const DD dd;
  const DH dh;
  const size_t lanes = hn::Lanes(dd);
  VD s0 = hn::Zero(dd), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, f(hn::PromoteTo(dd, hn::LoadU(dh, x + i))));
    s1 = hn::Add(s1, f(hn::PromoteTo(dd, hn::LoadU(dh, x + i + lanes))));
    s2 = hn::Add(s2, f(hn::PromoteTo(dd, hn::LoadU(dh, x + i + 2 * lanes))));
    s3 = hn::Add(s3, f(hn::PromoteTo(dd, hn::LoadU(dh, x + i + 3 * lanes))));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, f(hn::PromoteTo(dd, hn::LoadU(dh, x + i))));
  if (i < n) {
    const VD last = f(hn::PromoteTo(dd, load_some(dh, x + i, n - i)));
    s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(dd, n - i), last));
  }
  const VD sum = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  return hn::GetLane(hn::SumOfLanes(dd, sum));
}

double RowSum(const float* x, size_t n) { return sum_of(x, n, AsIs()); }
double RowSquares(const float* x, size_t n) { return sum_of(x, n, Squared()); }
double RowSquaredDifferences(const float* x, size_t n, double mean) {
  return sum_of(x, n, SquaredDifference{mean});
}

double RowDot(const float* x, const float* y, size_t n) {
  constexpr size_t kPiece = 1024;
  const D d;
  const size_t lanes = hn::Lanes(d);
  double total = 0;
  for (size_t first = 0; first < n; first += kPiece) {
    const size_t last = std::min(n, first + kPiece);
    V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    size_t i = first;
    for (; i + 4 * lanes <= last; i += 4 * lanes) {
      s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), s0);
      s1 = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, y + i + lanes), s1);
      s2 = hn::MulAdd(hn::LoadU(d, x + i + 2 * lanes), hn::LoadU(d, y + i + 2 * lanes), s2);
      s3 = hn::MulAdd(hn::LoadU(d, x + i + 3 * lanes), hn::LoadU(d, y + i + 3 * lanes), s3);
    }
    for (; i + lanes <= last; i += lanes)
      s0 = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), s0);
    if (i < last) s1 = hn::MulAdd(load_some(d, x + i, last - i), load_some(d, y + i, last - i), s1);
    const V sum = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total;
}

// The maximum of sign * x[i], or NaN if there is one. sign is 1 or -1.
float RowLargest(const float* x, size_t n, float sign) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V factor = hn::Set(d, sign);
  V best = hn::Set(d, -std::numeric_limits<float>::infinity());
  V bad = hn::Zero(d);  // x - x is NaN for NaN and infinities, else 0; only NaN is kept
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V v = hn::Mul(hn::LoadU(d, x + i), factor);
    best = hn::IfThenElse(hn::Gt(v, best), v, best);
    bad = hn::IfThenElse(hn::IsNaN(v), v, bad);
  }
  bool has_nan = !hn::AllFalse(d, hn::IsNaN(bad));
  float largest = largest_lane(d, best);
  for (; i < n; ++i) {
    const float v = x[i] * sign;
    has_nan |= v != v;
    largest = v > largest ? v : largest;
  }
  return has_nan ? std::numeric_limits<float>::quiet_NaN() : largest;
}

// The first i with x[i] == wanted, or the first NaN if wanted is NaN; n if there is none.
size_t FirstIndexOf(const float* x, size_t n, float wanted) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const bool nan = wanted != wanted;
  const V same = hn::Set(d, wanted);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const V v = hn::LoadU(d, x + i);
    const auto found = nan ? hn::IsNaN(v) : hn::Eq(v, same);
    if (!hn::AllFalse(d, found)) break;
  }
  for (; i < n; ++i)
    if (nan ? x[i] != x[i] : x[i] == wanted) return i;
  return n;
}

struct ExpOfDifference {
  float largest;
  HWY_INLINE V operator()(D d, V x) const { return exp_f32(d, hn::Sub(x, hn::Set(d, largest))); }
};
void ExpOfDifferences(const float* x, float largest, float* out, size_t n) {
  map(D(), D(), x, out, n, ExpOfDifference{largest});
}

// ((x - high) - low) * scale. high + low is a mean with more bits than f32 has, so that rows far
// from zero keep their precision.
struct Affine {
  float high, low, scale;
  HWY_INLINE V operator()(D d, V x) const {
    const V difference = hn::Sub(hn::Sub(x, hn::Set(d, high)), hn::Set(d, low));
    return hn::Mul(difference, hn::Set(d, scale));
  }
};
struct Times {
  HWY_INLINE V operator()(D, V a, V b) const { return hn::Mul(a, b); }
};
struct Plus {
  HWY_INLINE V operator()(D, V a, V b) const { return hn::Add(a, b); }
};

// In pieces that stay in the L1 cache between the steps.
void Normalise(const float* x, double mean, double scale, const float* weight, const float* bias,
               float* out, size_t n) {
  constexpr size_t kPiece = 2048;
  const D d;
  const float high = static_cast<float>(mean);
  const Affine affine{high, static_cast<float>(mean - static_cast<double>(high)),
                      static_cast<float>(scale)};
  for (size_t first = 0; first < n; first += kPiece) {
    const size_t count = std::min(kPiece, n - first);
    float* to = out + first;
    map(d, d, x + first, to, count, affine);
    if (weight) map(d, d, to, weight + first, to, count, Times());
    if (bias) map(d, d, to, bias + first, to, count, Plus());
  }
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(RowSum);
HWY_EXPORT(RowSquares);
HWY_EXPORT(RowSquaredDifferences);
HWY_EXPORT(RowDot);
HWY_EXPORT(RowLargest);
HWY_EXPORT(FirstIndexOf);
HWY_EXPORT(ExpOfDifferences);
HWY_EXPORT(Normalise);

double row_sum(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(RowSum)(x, n); }

double row_dot(const float* x, const float* y, size_t n) {
  return HWY_DYNAMIC_DISPATCH(RowDot)(x, y, n);
}

float row_max(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(RowLargest)(x, n, 1.0f); }

float row_min(const float* x, size_t n) { return -HWY_DYNAMIC_DISPATCH(RowLargest)(x, n, -1.0f); }

size_t row_argmax(const float* x, size_t n) {
  return n == 0 ? 0 : HWY_DYNAMIC_DISPATCH(FirstIndexOf)(x, n, row_max(x, n));
}

size_t row_argmin(const float* x, size_t n) {
  return n == 0 ? 0 : HWY_DYNAMIC_DISPATCH(FirstIndexOf)(x, n, row_min(x, n));
}

Moments row_moments(const float* x, size_t n, double correction) {
  const double mean = row_sum(x, n) / static_cast<double>(n);
  const double squares = HWY_DYNAMIC_DISPATCH(RowSquaredDifferences)(x, n, mean);
  return {mean, squares / (static_cast<double>(n) - correction)};
}

void row_cumsum(const float* x, float* out, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<float>(sum += static_cast<double>(x[i]));
}

void row_softmax(const float* x, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(ExpOfDifferences)(x, row_max(x, n), out, n);
  const double sum = row_sum(out, n);
  HWY_DYNAMIC_DISPATCH(Normalise)(out, 0, 1 / sum, nullptr, nullptr, out, n);
}

void row_log_softmax(const float* x, float* out, size_t n) {
  constexpr size_t kPiece = 2048;
  const float largest = row_max(x, n);
  float exponentials[kPiece];
  double sum = 0;
  for (size_t first = 0; first < n; first += kPiece) {
    const size_t count = std::min(kPiece, n - first);
    HWY_DYNAMIC_DISPATCH(ExpOfDifferences)(x + first, largest, exponentials, count);
    sum += row_sum(exponentials, count);
  }
  const double shift = static_cast<double>(largest) + std::log(sum);
  HWY_DYNAMIC_DISPATCH(Normalise)(x, shift, 1, nullptr, nullptr, out, n);
}

void row_normalise(const float* x, double mean, double scale, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(Normalise)(x, mean, scale, nullptr, nullptr, out, n);
}

void row_layer_norm(const float* x, const float* weight, const float* bias, double epsilon,
                    float* out, size_t n) {
  const Moments moments = row_moments(x, n);
  const double scale = 1 / std::sqrt(moments.variance + epsilon);
  HWY_DYNAMIC_DISPATCH(Normalise)(x, moments.mean, scale, weight, bias, out, n);
}

void row_rms_norm(const float* x, const float* weight, double epsilon, float* out, size_t n) {
  const double squares = HWY_DYNAMIC_DISPATCH(RowSquares)(x, n);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + epsilon);
  HWY_DYNAMIC_DISPATCH(Normalise)(x, 0, scale, weight, nullptr, out, n);
}

}  // namespace prism::cpu
#endif
