// Functions of f32 vectors to within a few units in the last place, for files compiled once per
// instruction set (included inside foreach_target). Functions that need a small relative error over
// wide ranges (gelu's tail, pow, sines of large arguments) compute in f64 lanes.

// Per-target include guard, as Highway requires.
#if defined(PRISM_CPU_VECTOR_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PRISM_CPU_VECTOR_MATH_INL_H
#undef PRISM_CPU_VECTOR_MATH_INL_H
#else
#define PRISM_CPU_VECTOR_MATH_INL_H
#endif

#include <hwy/highway.h>

#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace prism::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// c[0] + c[1] x + ..., by Horner's rule.
template <class D, class V, size_t kCount>
HWY_INLINE V polynomial(D d, V x, const hn::TFromD<D> (&c)[kCount]) {
  V sum = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

// --- f32 ---------------------------------------------------------------------------------------

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_f32(D d, V x) {
  const hn::RebindToSigned<D> di;
  // Below -104 the result rounds to 0, above 89 it is infinite.
  const V clamped = hn::Min(hn::Max(x, hn::Set(d, -104.0f)), hn::Set(d, 89.0f));
  const V n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504088896f)));
  // ln 2 in two parts; the first has 9 bits, so that its product with n is exact without fma.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  // Taylor series; |r| <= 0.347, so the first omitted term is 5e-9.
  const V p = polynomial(
      d, r, {1.0f, 1.0f, 0.5f, 1.0f / 6, 1.0f / 24, 1.0f / 120, 1.0f / 720, 1.0f / 5040});
  // 2^n in two factors: n is in -150 .. 128, and subnormal results are rounded once.
  const auto bits = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(bits);
  const auto bias = hn::Set(di, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(bits, half), bias)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(hn::Mul(p, first), second));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_f32(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V zero = hn::Zero(d);
  const V infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto good = hn::And(hn::Gt(x, zero), hn::Lt(x, infinity));
  V safe = hn::IfThenElse(good, x, hn::Set(d, 1.0f));
  const auto subnormal = hn::Lt(safe, hn::Set(d, 0x1p-126f));
  safe = hn::IfThenElse(subnormal, hn::Mul(safe, hn::Set(d, 0x1p25f)), safe);
  // safe = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const auto bits = hn::BitCast(di, safe);
  const auto above = hn::Sub(bits, hn::Set(di, 0x3f3504f3));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::And(above, hn::Set(di, ~0x7fffff))));
  V e = hn::ConvertTo(d, hn::ShiftRight<23>(above));
  e = hn::Sub(e, hn::IfThenElseZero(subnormal, hn::Set(d, 25.0f)));
  // log(1 + f) = f - f^2/2 + s (f^2/2 + R), s = f / (2 + f): the leading terms are exact.
  const V f = hn::Sub(m, hn::Set(d, 1.0f));
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0f)));
  const V z = hn::Mul(s, s);
  const V rest = hn::Mul(z, polynomial(d, z, {2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9, 2.0f / 11}));
  const V half_square = hn::Mul(hn::Mul(f, f), hn::Set(d, 0.5f));
  const V low =
      hn::MulAdd(s, hn::Add(half_square, rest), hn::Mul(e, hn::Set(d, 9.0580006145e-06f)));
  const V log1p = hn::Sub(hn::Sub(half_square, low), f);
  const V result = hn::Sub(hn::Mul(e, hn::Set(d, 6.9313812256e-01f)), log1p);
  const V odd = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(infinity),
                               hn::IfThenElse(hn::Eq(x, infinity), infinity,
                                              hn::Set(d, std::numeric_limits<float>::quiet_NaN())));
  return hn::IfThenElse(good, result, odd);
}

// log(1 + x). The factor x / (u - 1) corrects the rounding of u = 1 + x; where u is 1 or x itself
// there is nothing to correct.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p_f32(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(x, one);
  const V log = log_f32(d, u);
  const V corrected = hn::Mul(log, hn::Div(x, hn::Sub(u, one)));
  return hn::IfThenElse(hn::Eq(u, one), x, hn::IfThenElse(hn::Eq(u, x), log, corrected));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_f32(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V e = exp_f32(d, hn::Neg(hn::Abs(x)));
  // This numerator keeps the relative error of small results low.
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Div(numerator, hn::Add(e, one));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_f32(D d, V x) {
  const V one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  const V a = hn::Abs(x);
  const V z = hn::Mul(a, a);
  // Chebyshev interpolation of tanh(x)/x on x^2 in [0, 0.39]: error 1.5e-10.
  const V small =
      hn::Mul(a, polynomial(d, z,
                            {0.9999999998539343f, -0.3333332966292843f, 0.1333318174848827f,
                             -0.05394458467599171f, 0.02169126530700786f, -0.00815785335502225f,
                             0.002127435352720015f}));
  const V e = exp_f32(d, hn::Add(a, a));
  const V large = hn::Sub(one, hn::Div(two, hn::Add(e, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), small, large), x);
}

// --- f64 lanes, for results in f32: relative error about 1e-10 -----------------------------------

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_f64(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V clamped = hn::Min(hn::Max(x, hn::Set(d, -700.0)), hn::Set(d, 700.0));
  // Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
  const V magic = hn::Set(d, 0x1.8p52);
  const V shifted = hn::MulAdd(clamped, hn::Set(d, 1.4426950408889634), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693147180369123816490), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, 1.90821492927058770002e-10), r);
  const V p = polynomial(d, r,
                         {1.0, 1.0, 0.5, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                          1.0 / 40320, 1.0 / 362880});
  const auto power = hn::ShiftLeft<52>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 1023)));
  const V result = hn::Mul(p, hn::BitCast(d, power));
  // Below this the result is 0 in f32; also makes exp(-infinity) 0.
  const V kept = hn::IfThenElseZero(hn::Ge(x, hn::Set(d, -690.0)), result);
  return hn::IfThenElse(hn::IsNaN(x), x, kept);
}

// For positive, finite, normal x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_f64(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto above = hn::Sub(bits, hn::Set(di, int64_t{0x3fe6a09e667f3bcd}));
  const V m = hn::BitCast(d, hn::Sub(bits, hn::And(above, hn::Set(di, ~int64_t{0xfffffffffffff}))));
  const V e = hn::ConvertTo(d, hn::ShiftRight<52>(above));
  const V one = hn::Set(d, 1.0);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const V z = hn::Mul(s, s);
  const V p = polynomial(
      d, z, {2.0, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17});
  return hn::MulAdd(e, hn::Set(d, 0.693147180559945309417), hn::Mul(s, p));
}

// exp(t^2) erfc(t) for t >= 0; accurate up to t = 11, where erfc is far below the smallest f32.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V scaled_erfc_f64(D d, V t) {
  // Chebyshev interpolation in u, the image of t in [0, 11] under (t - 2.5) / (t + 2.5) scaled to
  // [-1, 1]: error 5e-11.
  const V k = hn::Set(d, 2.5);
  const V y = hn::Div(hn::Sub(t, k), hn::Add(t, k));
  const V u = hn::MulAdd(y, hn::Set(d, 1.227272727272727), hn::Set(d, 0.22727272727272724));
  return polynomial(
      d, u,
      {0.28912038963190906, -0.3901832505318838, 0.21882497242846616, -0.08417908318976208,
       0.018552346707163537, -0.00018862844505153616, -0.0010241878432719583, 9.798337393971178e-05,
       7.288988513251631e-05, -6.928312842570192e-06, -6.627043688553293e-06,
       2.0447515598647735e-07, 5.136243052051179e-07});
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf_f64(D d, V x) {
  const V a = hn::Min(hn::Abs(x), hn::Set(d, 11.0));
  const V z = hn::Mul(a, a);
  // Chebyshev interpolation of erf(x)/x on x^2 in [0, 1]: error 1e-12.
  const V small = hn::Mul(
      a, polynomial(d, z,
                    {1.1283791670946768, -0.3761263888964251, 0.11283791308774761,
                     -0.02686613324968769, 0.005223783538463434, -0.000854263939095745,
                     0.00011956580055150001, -1.3909453640965685e-05, 1.0589678909481155e-06}));
  const V tail = hn::Mul(scaled_erfc_f64(d, a), exp_f64(d, hn::Neg(z)));
  const V large = hn::Sub(hn::Set(d, 1.0), tail);
  const V result = hn::IfThenElse(hn::Lt(a, hn::Set(d, 1.0)), small, large);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}

// x/2 erfc(-x/sqrt(2)).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_f64(D d, V x) {
  const V t = hn::Mul(hn::Abs(x), hn::Set(d, 0.70710678118654752440));
  const V in_range = hn::Min(t, hn::Set(d, 11.0));
  // Beyond 11, the exponential alone takes the tail to 0.
  const V tail = hn::Mul(scaled_erfc_f64(d, in_range), exp_f64(d, hn::Neg(hn::Mul(t, t))));
  const V twice = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 2.0), tail));
  return hn::Mul(hn::Mul(x, hn::Set(d, 0.5)), twice);
}

// x sigmoid(2u) = x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_tanh_f64(D d, V x) {
  const V one = hn::Set(d, 1.0);
  const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.044715), one);
  const V twice_u = hn::Mul(hn::Mul(x, cubic), hn::Set(d, 2 * 0.79788456080286535588));
  const V e = exp_f64(d, hn::Neg(hn::Abs(twice_u)));
  const V numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one);
  return hn::Mul(x, hn::Div(numerator, hn::Add(e, one)));
}

// Up to this |x|, the product of n and the 33-bit first part of pi/2 is exact.
inline constexpr double kLargestReduced = 1e6;

// sin(x + quarter_turns * pi/2) for |x| <= kLargestReduced.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sine_f64(D d, V x, int quarter_turns) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 0x1.8p52);
  const V shifted = hn::MulAdd(x, hn::Set(d, 0.63661977236758134308), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 1.57079632673412561417e+00), x);
  r = hn::NegMulAdd(n, hn::Set(d, 6.07710050650619224932e-11), r);
  const V z = hn::Mul(r, r);
  // Taylor series; |r| <= 0.786, so the first omitted terms are below 1e-11.
  const V sine = hn::Mul(
      r, polynomial(d, z, {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800}));
  const V cosine = polynomial(
      d, z, {1.0, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600});
  const auto quadrant = hn::Add(hn::BitCast(di, shifted), hn::Set(di, int64_t{quarter_turns}));
  const auto odd = hn::Ne(hn::And(quadrant, hn::Set(di, int64_t{1})), hn::Zero(di));
  const V value = hn::IfThenElse(hn::RebindMask(d, odd), cosine, sine);
  const V sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(quadrant, hn::Set(di, int64_t{2}))));
  return hn::Xor(value, sign);
}

// |x|^y with the sign of an integer power; for finite, normal x and finite y.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V pow_f64(D d, V x, V y) {
  const V magnitude = exp_f64(d, hn::Mul(y, log_f64(d, hn::Abs(x))));
  const auto negative = hn::Lt(x, hn::Zero(d));
  const V half = hn::Mul(y, hn::Set(d, 0.5));
  const auto integer = hn::Eq(hn::Round(y), y);
  const auto even = hn::Eq(hn::Round(half), half);
  const V sign_of_odd = hn::IfThenElse(even, magnitude, hn::Neg(magnitude));
  const V of_negative =
      hn::IfThenElse(integer, sign_of_odd, hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
  return hn::IfThenElse(negative, of_negative, magnitude);
}

}  // namespace prism::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
