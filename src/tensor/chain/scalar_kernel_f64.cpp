// erf by two polynomial fits, and pow by a double-double logarithm, in f64.
#include "tensor/chain/scalar_kernel_f64.h"

#include <array>

namespace prism {

using namespace dsl;

namespace {

Value number(double value) { return constant(f64, value); }
Value infinity() { return constant_bits(f64, 0x7ff0000000000000u); }

template <size_t N>
Value polynomial(Value x, const std::array<double, N>& coefficients) {  // lowest power first
  Value sum = number(coefficients[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + number(coefficients[i]);
  return sum;
}

// erf(x) / x as a polynomial in x^2 for |x| <= 1, with an error below 2e-17. Both fits interpolate
// at Chebyshev nodes, computed with 50 digits.
constexpr std::array<double, 13> kErfNear = {
    1.1283791670955126,      -0.3761263890318375,     0.11283791670954879,
    -0.026866170645076792,   0.0052239776248180145,   -0.000854832698083379,
    0.0001205533111164271,   -1.4925595266831182e-05, 1.6461000484121368e-06,
    -1.6350312701054695e-07, 1.4659775274047436e-08,  -1.1372848856791674e-09,
    5.957176147748911e-11};
// (1 + 2t) e^(t^2) (1 - erf(t)) as a polynomial in (t - 4) / (t + 4) for t from 0.95 to 27.3,
// beyond which 1 - erf(t) underflows in f64. The error is below 5e-17.
constexpr double kErfEnd = 27.3;
constexpr std::array<double, 21> kErfFar = {
    1.2329951186255526,     -0.13962111684056253,    0.015379652102620931,
    0.06809705425469414,    -0.10103906603639709,    0.0937328349983082,
    -0.06633036580937549,   0.03716751553759827,     -0.01619773410249009,
    0.005031969988671427,   -0.0007577728817321241,  -0.00019925688235319705,
    0.00015061941071910535, -2.4397730962152484e-05, -1.1214225769502241e-05,
    5.703197256361785e-06,  2.777003491148764e-07,   -8.088300806228544e-07,
    9.243907228396911e-08,  8.708017483559945e-08,   -2.488739486388869e-08};

struct Sum {
  Value high, low;
};

// high + low is exactly a + b if |a| >= |b|.
Sum quick_sum(Value a, Value b) {
  const Value high = a + b;
  return {high, b - (high - a)};
}

// 1 - erf(t) for t >= 0.95. The rounding error of t^2 is corrected: exp would magnify it.
Value far_complement(Value t) {
  const Value square = t * t;
  const Value fit = polynomial((t - number(4)) / (t + number(4)), kErfFar);
  const Value lost = fma(t, t, -square);
  return exp(-square) * (number(1) - lost) * fit / (number(1) + number(2) * t);
}

// ln a for positive finite a, to about 60 bits: 2 artanh(s), with s = f / (f + 2) in two parts.
Sum logarithm(Value a) {
  static const std::array<double, 11> kTerms = [] {
    std::array<double, 11> terms{};
    for (size_t k = 0; k < terms.size(); ++k) terms[k] = 2.0 / (2.0 * static_cast<double>(k) + 3);
    return terms;
  }();
  const Value tiny = a < number(0x1p-1022);
  const Value words = bitcast(Type{u32, 2}, select(tiny, a * number(0x1p54), a));
  const Value high = bitcast(i32, words[1]);
  const Value e = (high - 0x3fe6a09e) >> 20;  // centres the mantissa around 1
  const Value m = bitcast(Type{f64, 1}, vec(words[0], bitcast(u32, high - (e << 20))));
  const Value f = m - number(1);
  const Sum below = quick_sum(number(2), f);
  const Value s = f / below.high;
  const Value s_low = (fma(-s, below.high, f) - s * below.low) / below.high;
  const Value z = s * s;
  const Value series = s * z * polynomial(z, kTerms) + number(2) * s_low;
  const Value exponent = cast(f64, select(tiny, e - 54, e));
  // ln 2 in two parts, the first short enough for an exact product.
  const Value whole = exponent * number(0x1.62e42fefp-1), twice = number(2) * s;
  const Value sum = whole + twice, part = sum - whole;
  const Value lost = (whole - (sum - part)) + (twice - part);
  return quick_sum(sum, lost + (series + exponent * number(0x1.473de6af278edp-34)));
}

}  // namespace

Value one_plus_erf_f64(Value x) {
  const Value t = min(abs(x), number(kErfEnd));
  const Value tail = far_complement(t);
  const Value far = select(x < number(0), tail, number(2) - tail);
  const Value near = number(1) + x * polynomial(x * x, kErfNear);
  return select(t < number(1), near, far);
}

Value erf_f64(Value x) {
  const Value t = min(abs(x), number(kErfEnd));
  const Value far = number(1) - far_complement(t);
  const Value near = x * polynomial(x * x, kErfNear);
  const Value result = select(t < number(1), near, select(x < number(0), -far, far));
  return select(x != x, x, result);
}

Value pow_f64(Value a, Value b) {
  const Value size = abs(a);
  const Value inside = size > number(0) && size < infinity();
  const Sum log = logarithm(select(inside, size, number(1)));
  const Value outside = select(size == number(0), -infinity(), infinity());
  const Value high = select(inside, log.high, outside);
  const Value product = b * high;
  // Add the product's rounding error if the result is neither 0 nor infinity.
  const Value counts = inside && abs(product) < number(800);
  const Value lost = fma(b, high, -product) + b * log.low;
  const Value magnitude = exp(product) * (number(1) + select(counts, lost, number(0)));
  const Value whole = floor(b) == b;
  const Value odd = whole && floor(b * number(0.5)) * number(2) != b;
  const Value nan = constant_bits(f64, 0x7ff8000000000000u);
  const Value is_negative = (bitcast(Type{u32, 2}, a)[1] >> 31u) != 0u;  // includes -0
  const Value no_number = a < number(0) && size < infinity() && !whole;
  const Value signed_result =
      select(no_number, nan, select(is_negative && odd, -magnitude, magnitude));
  const Value one = b == number(0) || a == number(1) || (a == number(-1) && abs(b) == infinity());
  return select(one, number(1), select(a != a || b != b, a + b, signed_result));
}

}  // namespace prism
