// Arithmetic and comparisons of f32 in vector code. elementwise_functions.cpp has the functions.
#include "cpu/highway_config.h"
// highway_config.h must come before Highway.
#include "cpu/elementwise_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/elementwise_f32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_loops_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;

#define PRISM_UNARY(Name, expression)                              \
  struct Name {                                                    \
    HWY_INLINE V operator()(D d, V x) const { return expression; } \
  };
#define PRISM_BINARY(Name, expression)                                \
  struct Name {                                                       \
    HWY_INLINE V operator()(D, V a, V b) const { return expression; } \
  };
#define PRISM_COMPARISON(Name, expression)                                           \
  struct Name {                                                                      \
    HWY_INLINE hn::Vec<DI> operator()(D, V a, V b) const {                           \
      return hn::IfThenElseZero(hn::RebindMask(DI(), expression), hn::Set(DI(), 1)); \
    }                                                                                \
  };

struct Neg {
  HWY_INLINE V operator()(D, V x) const { return hn::Neg(x); }
};
struct Abs {
  HWY_INLINE V operator()(D, V x) const { return hn::Abs(x); }
};
struct Square {
  HWY_INLINE V operator()(D, V x) const { return hn::Mul(x, x); }
};
PRISM_UNARY(Relu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x))
struct Sign {
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::CopySign(hn::Set(d, 1.0f), x);
    return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), one, x);  // zeros and NaN are unchanged
  }
};
PRISM_BINARY(Add, hn::Add(a, b))
PRISM_BINARY(Sub, hn::Sub(a, b))
PRISM_BINARY(Mul, hn::Mul(a, b))
PRISM_BINARY(Div, hn::Div(a, b))
PRISM_BINARY(Min, hn::IfThenElse(hn::Or(hn::Lt(b, a), hn::Not(hn::Eq(b, b))), b, a))
PRISM_BINARY(Max, hn::IfThenElse(hn::Or(hn::Lt(a, b), hn::Not(hn::Eq(b, b))), b, a))
PRISM_COMPARISON(Eq, hn::Eq(a, b))
PRISM_COMPARISON(Ne, hn::Not(hn::Eq(a, b)))  // Highway's own Ne is false for NaN on AVX-512
PRISM_COMPARISON(Lt, hn::Lt(a, b))
PRISM_COMPARISON(Le, hn::Le(a, b))
PRISM_COMPARISON(Gt, hn::Gt(a, b))
PRISM_COMPARISON(Ge, hn::Ge(a, b))

#undef PRISM_UNARY
#undef PRISM_BINARY
#undef PRISM_COMPARISON

bool ApplyF32(ScalarOp op, const float* a, const float* b, void* out, size_t n) {
  float* to = static_cast<float*>(out);
  int32_t* truth = static_cast<int32_t*>(out);
  const D d;
  const DI di;
  switch (op) {
    case ScalarOp::neg:
      map(d, d, a, to, n, Neg());
      return true;
    case ScalarOp::abs:
      map(d, d, a, to, n, Abs());
      return true;
    case ScalarOp::sign:
      map(d, d, a, to, n, Sign());
      return true;
    case ScalarOp::relu:
      map(d, d, a, to, n, Relu());
      return true;
    case ScalarOp::square:
      map(d, d, a, to, n, Square());
      return true;
    case ScalarOp::add:
      map(d, d, a, b, to, n, Add());
      return true;
    case ScalarOp::sub:
      map(d, d, a, b, to, n, Sub());
      return true;
    case ScalarOp::mul:
      map(d, d, a, b, to, n, Mul());
      return true;
    case ScalarOp::div:
      map(d, d, a, b, to, n, Div());
      return true;
    case ScalarOp::min:
      map(d, d, a, b, to, n, Min());
      return true;
    case ScalarOp::max:
      map(d, d, a, b, to, n, Max());
      return true;
    case ScalarOp::eq:
      map(d, di, a, b, truth, n, Eq());
      return true;
    case ScalarOp::ne:
      map(d, di, a, b, truth, n, Ne());
      return true;
    case ScalarOp::lt:
      map(d, di, a, b, truth, n, Lt());
      return true;
    case ScalarOp::le:
      map(d, di, a, b, truth, n, Le());
      return true;
    case ScalarOp::gt:
      map(d, di, a, b, truth, n, Gt());
      return true;
    case ScalarOp::ge:
      map(d, di, a, b, truth, n, Ge());
      return true;
    default:
      return false;
  }
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(ApplyF32);

bool apply_f32(ScalarOp op, const float* a, const float* b, void* out, size_t n) {
  return HWY_DYNAMIC_DISPATCH(ApplyF32)(op, a, b, out, n);
}

}  // namespace prism::cpu
#endif
