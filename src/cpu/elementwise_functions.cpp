// The float functions (float_functions.inc) and pow over f32 arrays in vector code.
#include "cpu/highway_config.h"
// highway_config.h must come before Highway.
#include "cpu/elementwise_parts.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise_functions.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_loops_inl.h"
#include "cpu/vector_math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
// A vector of f64, and one of f32 with as many lanes.
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;
using DH = hn::Rebind<float, DD>;
using VH = hn::Vec<DH>;

HWY_INLINE VH narrow(VD v) {
  const DH dh;
  const VH result = hn::DemoteTo(dh, v);
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway's portable conversion saturates at the largest f32.
  const float infinity = std::numeric_limits<float>::infinity();
  const auto over = hn::Ge(hn::Abs(v), hn::Set(DD(), 0x1.ffffffp127));
  const VD signs = hn::CopySign(hn::Set(DD(), 1.0), v);
  const VH infinite = hn::Mul(hn::DemoteTo(dh, signs), hn::Set(dh, infinity));
  const VD chosen = hn::IfThenElseZero(over, hn::Set(DD(), 1.0));
  return hn::IfThenElse(hn::Gt(hn::DemoteTo(dh, chosen), hn::Zero(dh)), infinite, result);
#else
  return result;
#endif
}

// Scalar fallback for lanes that the vector function does not cover.
template <class F>
HWY_NOINLINE VH one_by_one(VH x, VH y, F f) {
  const DH dh;
  HWY_ALIGN float xs[HWY_MAX_BYTES / sizeof(float)];
  HWY_ALIGN float ys[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, dh, xs);
  hn::Store(y, dh, ys);
  for (size_t i = 0; i < hn::Lanes(dh); ++i)
    xs[i] = static_cast<float>(f(static_cast<double>(xs[i]), static_cast<double>(ys[i])));
  return hn::Load(dh, xs);
}

struct ScalarSine {
  int quarter_turns;
  double operator()(double x, double) const {
    return quarter_turns == 0 ? std::sin(x) : std::cos(x);
  }
};
struct ScalarPow {
  double operator()(double x, double y) const { return std::pow(x, y); }
};

HWY_INLINE VH sine(DH dh, VH x, int quarter_turns) {
  const auto covered = hn::Le(hn::Abs(x), hn::Set(dh, static_cast<float>(kLargestReduced)));
  if (HWY_UNLIKELY(!hn::AllTrue(dh, covered))) return one_by_one(x, x, ScalarSine{quarter_turns});
  return narrow(sine_f64(DD(), hn::PromoteTo(DD(), x), quarter_turns));
}
struct Pow {
  HWY_INLINE VH operator()(DH dh, VH x, VH y) const {
    const VH largest = hn::Set(dh, std::numeric_limits<float>::max());
    const VH size = hn::Abs(x);
    const auto covered = hn::And(hn::And(hn::Gt(size, hn::Zero(dh)), hn::Le(size, largest)),
                                 hn::Le(hn::Abs(y), largest));
    if (HWY_UNLIKELY(!hn::AllTrue(dh, covered))) return one_by_one(x, y, ScalarPow());
    return narrow(pow_f64(DD(), hn::PromoteTo(DD(), x), hn::PromoteTo(DD(), y)));
  }
};

// A function object for each function of the table, for f32 or f64 lanes.
#define PRISM_LANES_f32(Name, vector)                                             \
  struct Name {                                                                   \
    using Tag = D;                                                                \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x) const { return (vector); } \
  };
#define PRISM_LANES_f64(Name, vector)               \
  struct Name {                                     \
    using Tag = DH;                                 \
    HWY_INLINE VH operator()(DH, VH stored) const { \
      [[maybe_unused]] const DD d;                  \
      const VD x = hn::PromoteTo(DD(), stored);     \
      return narrow(vector);                        \
    }                                               \
  };
#define PRISM_LANES_half(Name, vector)                                               \
  struct Name {                                                                      \
    using Tag = DH;                                                                  \
    HWY_INLINE VH operator()([[maybe_unused]] DH d, VH x) const { return (vector); } \
  };
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  PRISM_LANES_##lanes(Function_##name, vector)
#include "base/types/float_functions.inc"
#undef PRISM_LANES_f32
#undef PRISM_LANES_f64
#undef PRISM_LANES_half

template <class F>
HWY_INLINE bool map_function(F f, const float* a, float* out, size_t n) {
  const typename F::Tag d;
  map(d, d, a, out, n, f);
  return true;
}

bool ApplyF32Functions(ScalarOp op, const float* a, const float* b, float* out, size_t n) {
  const DH dh;
  switch (op) {
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  case ScalarOp::name:                                                                         \
    return map_function(Function_##name(), a, out, n);
#include "base/types/float_functions.inc"
    case ScalarOp::pow:
      map(dh, dh, a, b, out, n, Pow());
      return true;
    default:
      return false;
  }
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(ApplyF32Functions);

bool apply_f32_functions(ScalarOp op, const float* a, const float* b, float* out, size_t n) {
  return HWY_DYNAMIC_DISPATCH(ApplyF32Functions)(op, a, b, out, n);
}

}  // namespace prism::cpu
#endif
