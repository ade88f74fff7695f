// Software exp, log, sin, cos and tanh in f64, within a few ulp, for devices that have only + - * /
// and sqrt in f64 (SPIR-V, and HIP without its device library).
//
// Arguments are reduced with constants in several parts, so that the remainder keeps its digits;
// the Taylor series of the remainder is truncated below 2^-56. Polynomials do not use fma: where it
// is emulated it would cost ten times as much.
#include <array>

#include "lower/passes.h"
#include "lower/rewriter.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
constexpr double kLn2High = 0x1.62e42fefp-1, kLn2Low = 0x1.473de6af278edp-34;

Value number(double value) { return constant(f64, value); }
Value infinity() { return constant_bits(f64, 0x7ff0000000000000u); }
Value not_a_number() { return constant_bits(f64, 0x7ff8000000000000u); }

// The word with sign, exponent and the first 20 mantissa bits. Uses pairs of words, so that a
// device needs no 64-bit integers.
Value high_word(Value x) { return bitcast(i32, bitcast(Type{u32, 2}, x)[1]); }
Value with_high_word(Value x, Value word) {
  return bitcast(Type{f64, 1}, vec(bitcast(Type{u32, 2}, x)[0], bitcast(u32, word)));
}
Value power_of_two(Value n) { return with_high_word(number(0), (n + 1023) << 20); }

template <size_t N>
Value polynomial(Value x, const std::array<double, N>& coefficients) {  // lowest power first
  Value sum = number(coefficients[N - 1]);
  for (size_t i = N - 1; i-- > 0;) sum = sum * x + number(coefficients[i]);
  return sum;
}

// 1/first!, 1/(first+step)!, ... with alternating signs if step is 2.
template <size_t N>
std::array<double, N> inverse_factorials(int first, int step) {
  std::array<double, N> result{};
  double factorial = 1;
  for (int i = 2; i <= first; ++i) factorial *= i;
  for (size_t n = 0; n < N; ++n) {
    result[n] = (step == 2 && n % 2 == 1 ? -1 : 1) / factorial;
    for (int i = 1; i <= step; ++i) factorial *= first + static_cast<int>(n) * step + i;
  }
  return result;
}

// e^r - 1 for |r| <= ln2/2.
Value near_exponential(Value r) {
  static const auto kTerms = inverse_factorials<12>(2, 1);
  return r + r * r * polynomial(r, kTerms);
}

// Scales in two steps, because 2^n alone may not be a normal number.
Value scaled(Value x, Value n) {
  const Value half = n >> 1;
  return x * power_of_two(half) * power_of_two(n - half);
}

struct Reduced {
  Value n, r;  // x = n ln2 + r
};
Reduced reduced(Value x) {
  const Value n = round_even(x * number(kLog2E));
  return {n, (x - n * number(kLn2High)) - n * number(kLn2Low)};
}

Value own_exp(Value x) {
  const Value clamped = min(max(x, number(-750)), number(710));
  const Reduced to = reduced(clamped);
  const Value result = scaled(near_exponential(to.r) + number(1), cast(i32, to.n));
  return select(x != x, x,
                select(x > number(709.782712893384), infinity(),
                       select(x < number(-745.1332191019412), number(0), result)));
}

Value own_exp2(Value x) {
  const Value clamped = min(max(x, number(-1080)), number(1024));
  const Value n = round_even(clamped);
  const Value result =
      scaled(near_exponential((clamped - n) * number(kLn2)) + number(1), cast(i32, n));
  return select(
      x != x, x,
      select(x >= number(1024), infinity(), select(x < number(-1075), number(0), result)));
}

struct Logarithm {
  Value exponent;          // as f64
  Value mantissa, square;  // f = m - 1, and f^2 / 2
  Value rest;              // ln m = f - square + rest
};

Logarithm logarithm(Value x) {
  static const std::array<double, 11> kTerms = [] {
    std::array<double, 11> terms{};
    for (size_t k = 0; k < terms.size(); ++k) terms[k] = 2.0 / (2.0 * static_cast<double>(k) + 3);
    return terms;
  }();
  const Value tiny = x < number(0x1p-1022);
  const Value normal = select(tiny, x * number(0x1p54), x);
  const Value high = high_word(normal);
  const Value e = (high - 0x3fe6a09e) >> 20;  // puts the mantissa around 1
  const Value f = with_high_word(normal, high - (e << 20)) - number(1);
  const Value s = f / (f + number(2)), z = s * s;
  const Value square = number(0.5) * f * f;
  const Value rest = s * (square + z * polynomial(z, kTerms));
  return {cast(f64, select(tiny, e - 54, e)), f, square, rest};
}

Value with_edges_of_log(Value x, Value result) {
  const Value finite = select(x < infinity(), result, x);  // infinity and NaN pass through
  return select(x > number(0), finite,
                select(x == number(0), -infinity(), select(x != x, x, not_a_number())));
}

Value own_log(Value x) {
  const Logarithm l = logarithm(x);
  const Value low = l.square - (l.rest + l.exponent * number(kLn2Low));
  return with_edges_of_log(x, l.exponent * number(kLn2High) - (low - l.mantissa));
}

Value own_log2(Value x) {
  const Logarithm l = logarithm(x);
  return with_edges_of_log(x, l.exponent + (l.mantissa - (l.square - l.rest)) * number(kLog2E));
}

// quarter_turns: 0 for sin, 1 for cos. Accurate for |x| < 2^50; a larger x is itself coarser than a
// quarter turn and gives some number between -1 and 1.
Value own_sine(Value x, int quarter_turns) {
  static const auto kSine = inverse_factorials<8>(3, 2);
  static const auto kCosine = inverse_factorials<7>(4, 2);
  const Value n = round_even(x * number(0.6366197723675814));
  // pi / 2 in three parts. Fused: the difference is far smaller than either operand.
  Value r = fma(n, number(-0x1.921fb54442d18p+0), x);
  r = fma(n, number(-0x1.1a62633145c07p-54), r);
  r = fma(n, number(0x1.f1976b7ed8fbcp-110), r);
  r = select(abs(r) < number(2), r, number(0));
  const Value z = r * r, half = number(0.5) * z;
  const Value sine = r - r * z * polynomial(z, kSine);
  const Value near = number(1) - half;
  const Value cosine = near + (((number(1) - near) - half) + z * z * polynomial(z, kCosine));
  const Value quadrant = cast(i32, n - number(4) * floor(n * number(0.25))) + quarter_turns;
  const Value magnitude = select((quadrant & 1) != 0, cosine, sine);
  Value result = select((quadrant & 2) != 0, -magnitude, magnitude);
  if (quarter_turns == 0) result = select(x == number(0), x, result);  // -0 stays -0
  return select(abs(x) < infinity(), result, not_a_number());
}

// t / (t + 2) for t = e^2|x| - 1, which keeps its digits near zero.
Value own_tanh(Value x) {
  const Value a = abs(x);
  const Reduced to = reduced(min(a, number(22)) * number(2));
  const Value scale = power_of_two(cast(i32, to.n));
  const Value t = near_exponential(to.r) * scale + (scale - number(1));
  const Value size = select(a < number(22), t / (t + number(2)), number(1));
  return select(x != x || x == number(0), x, select(x < number(0), -size, size));
}

class LowerMathF64 : public Rewriter {
  template <class Function>
  void by_lane(const Inst& inst, const Function& f) {
    const Value x = arg(inst, 0);
    const uint32_t lanes = x.type().lanes;
    if (lanes == 1) return bind(inst.result, f(x));
    std::vector<Value> parts;
    for (uint32_t i = 0; i < lanes; ++i) parts.push_back(f(x[i]));
    bind(inst.result,
         lanes == 2 ? vec(parts[0], parts[1]) : vec(parts[0], parts[1], parts[2], parts[3]));
  }

  bool rewrite(const Inst& inst) override {
    if (inst.type.element != f64) return false;
    switch (inst.op) {
      case Op::exp:
        by_lane(inst, own_exp);
        return true;
      case Op::exp2:
        by_lane(inst, own_exp2);
        return true;
      case Op::log:
        by_lane(inst, own_log);
        return true;
      case Op::log2:
        by_lane(inst, own_log2);
        return true;
      case Op::sin:
        by_lane(inst, [](Value x) { return own_sine(x, 0); });
        return true;
      case Op::cos:
        by_lane(inst, [](Value x) { return own_sine(x, 1); });
        return true;
      case Op::tanh:
        by_lane(inst, own_tanh);
        return true;
      default:
        return false;
    }
  }
};

}  // namespace

ir::Kernel lower_math_f64(const ir::Kernel& kernel) { return LowerMathF64().run(kernel); }

}  // namespace prism::lower_detail
