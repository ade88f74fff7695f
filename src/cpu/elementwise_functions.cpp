// exp, log, sin, gelu, pow and their kin over f32 arrays in vector code.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
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
// f64 lanes and as many of f32.
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;
using DH = hn::Rebind<float, DD>;
using VH = hn::Vec<DH>;

HWY_INLINE VH narrow(VD v) {
  const DH dh;
  const VH result = hn::DemoteTo(dh, v);
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  // Highway's portable conversion stops at the largest f32.
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

struct Exp {
  HWY_INLINE V operator()(D d, V x) const { return exp_f32(d, x); }
};
struct Log {
  HWY_INLINE V operator()(D d, V x) const { return log_f32(d, x); }
};
struct Tanh {
  HWY_INLINE V operator()(D d, V x) const { return tanh_f32(d, x); }
};
struct Sigmoid {
  HWY_INLINE V operator()(D d, V x) const { return sigmoid_f32(d, x); }
};
struct Silu {
  HWY_INLINE V operator()(D d, V x) const { return hn::Mul(x, sigmoid_f32(d, x)); }
};
struct Erf {
  HWY_INLINE VH operator()(DH, VH x) const { return narrow(erf_f64(DD(), hn::PromoteTo(DD(), x))); }
};
struct Gelu {
  HWY_INLINE VH operator()(DH, VH x) const {
    return narrow(gelu_f64(DD(), hn::PromoteTo(DD(), x)));
  }
};
struct GeluTanh {
  HWY_INLINE VH operator()(DH, VH x) const {
    return narrow(gelu_tanh_f64(DD(), hn::PromoteTo(DD(), x)));
  }
};

// Lanes that a vector function does not cover, one by one.
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

struct Sine {
  int quarter_turns;
  HWY_INLINE VH operator()(DH dh, VH x) const {
    const auto covered = hn::Le(hn::Abs(x), hn::Set(dh, static_cast<float>(kLargestReduced)));
    if (HWY_UNLIKELY(!hn::AllTrue(dh, covered))) return one_by_one(x, x, ScalarSine{quarter_turns});
    return narrow(sine_f64(DD(), hn::PromoteTo(DD(), x), quarter_turns));
  }
};
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

bool ApplyF32Functions(ScalarOp op, const float* a, const float* b, float* out, size_t n) {
  const D d;
  const DH dh;
  switch (op) {
    case ScalarOp::exp:
      map(d, d, a, out, n, Exp());
      return true;
    case ScalarOp::log:
      map(d, d, a, out, n, Log());
      return true;
    case ScalarOp::tanh:
      map(d, d, a, out, n, Tanh());
      return true;
    case ScalarOp::sigmoid:
      map(d, d, a, out, n, Sigmoid());
      return true;
    case ScalarOp::silu:
      map(d, d, a, out, n, Silu());
      return true;
    case ScalarOp::sin:
      map(dh, dh, a, out, n, Sine{0});
      return true;
    case ScalarOp::cos:
      map(dh, dh, a, out, n, Sine{1});
      return true;
    case ScalarOp::erf:
      map(dh, dh, a, out, n, Erf());
      return true;
    case ScalarOp::gelu:
      map(dh, dh, a, out, n, Gelu());
      return true;
    case ScalarOp::gelu_tanh:
      map(dh, dh, a, out, n, GeluTanh());
      return true;
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
