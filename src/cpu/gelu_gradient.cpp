// The slope of gelu in vector code: one exponential serves the normal distribution and its density.
#include "cpu/highway_config.h"
// The configuration comes before Highway.
#include "cpu/gelu_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/gelu_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "cpu/vector_loops_inl.h"
#include "cpu/vector_math_inl.h"

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct GeluSlope {
  HWY_INLINE V operator()(D d, V x, V g) const {
    const V half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
    const V e = exp_f32(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5f)));
    // Abramowitz and Stegun, 7.1.26, at |x| / sqrt(2): erfc with an error of 1.5e-7.
    const V t = hn::Div(one, hn::MulAdd(hn::Abs(x), hn::Set(d, 0.23164190f), one));
    V p = hn::Set(d, 1.061405429f);
    p = hn::MulAdd(p, t, hn::Set(d, -1.453152027f));
    p = hn::MulAdd(p, t, hn::Set(d, 1.421413741f));
    p = hn::MulAdd(p, t, hn::Set(d, -0.284496736f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.254829592f));
    const V beyond = hn::Mul(hn::Mul(p, t), hn::Mul(e, half));
    const V below = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), beyond, hn::Sub(one, beyond));
    const V density = hn::Mul(e, hn::Set(d, 0.39894228f));
    return hn::Mul(g, hn::MulAdd(x, density, below));
  }
};

void GeluGradient(const float* x, const float* g, float* out, size_t n) {
  map(D(), D(), x, g, out, n, GeluSlope());
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace prism::cpu {

HWY_EXPORT(GeluGradient);

void gelu_gradient(const float* x, const float* g, float* out, size_t n) {
  HWY_DYNAMIC_DISPATCH(GeluGradient)(x, g, out, n);
}

}  // namespace prism::cpu
#endif
