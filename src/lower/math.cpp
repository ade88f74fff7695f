// Software exp, log, sin, cos and tanh in f32, within 4 ulp, for devices with less precise
// functions.
//
// Arguments are reduced with constants in several parts (Cody and Waite), all but the last short,
// so that their products are exact even without fused fma; the polynomials are the classic minimax
// ones for these intervals.
#include "lower/passes.h"
#include "lower/rewriter.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

constexpr float kLog2E = 1.44269504f;

Type like(Value x, DType element) { return Type{element, x.type().lanes}; }
Value words(Value x) { return bitcast(like(x, i32), x); }
Value floats(Value x) { return bitcast(like(x, f32), x); }
Value power_of_two(Value n) { return floats((n + 127) << 23); }
Value infinity(Value x) { return splat(constant_bits(f32, 0x7f800000u), x.type().lanes); }
Value not_a_number(Value x) { return splat(constant_bits(f32, 0x7fc00000u), x.type().lanes); }

// e^r * 2^n for |r| <= ln2/2. Scales in two steps, because 2^n alone may not be a normal number.
Value scaled_exponential(Value r, Value n) {
  Value p = fma(r, 1.9875691500e-4f, 1.3981999507e-3f);
  p = fma(p, r, 8.3334519073e-3f);
  p = fma(p, r, 4.1665795894e-2f);
  p = fma(p, r, 1.6666665459e-1f);
  p = fma(p, r, 5.0000001201e-1f);
  p = fma(p, r * r, r) + 1.0f;
  const Value half = n >> 1;
  return p * power_of_two(half) * power_of_two(n - half);
}

Value own_exp(Value x) {
  const Value clamped = min(max(x, -105.0f), 90.0f);
  const Value n = round_even(clamped * kLog2E);
  const Value r = fma(n, 2.12194442e-4f, fma(n, -0.693359375f, clamped));  // ln2 in two parts
  const Value result = scaled_exponential(r, cast(i32, n));
  return select(is_nan(x), x,
                select(x > 88.7228394f, infinity(x), select(x < -103.972084f, 0.0f, result)));
}

Value own_exp2(Value x) {
  const Value clamped = min(max(x, -151.0f), 129.0f);
  const Value n = round_even(clamped);
  const Value result = scaled_exponential((clamped - n) * 0.693147182f, cast(i32, n));
  return select(is_nan(x), x, select(x >= 128.0f, infinity(x), select(x < -150.0f, 0.0f, result)));
}

struct Logarithm {
  Value exponent;  // as f32
  Value rest;      // ln of the mantissa, |rest| < 0.35
};

Logarithm logarithm(Value x) {
  const Value tiny = x < 1.17549435e-38f;
  const Value bits = words(select(tiny, x * 8388608.0f, x));
  const Value e = (bits - 0x3f3504f3) >> 23;  // puts the mantissa around 1
  const Value m = floats(bits - (e << 23));
  const Value f = m - 1.0f;
  const Value s = f / (f + 2.0f), z = s * s, w = z * z;
  const Value odd = z * fma(w, 2.8498786688e-1f, 6.6666662693e-1f);
  const Value even = w * fma(w, 2.4279078841e-1f, 4.0000972152e-1f);
  const Value half_square = f * f * 0.5f;
  const Value rest = f - (half_square - s * (half_square + odd + even));
  const Value exponent = cast(f32, select(tiny, e - 23, e));
  return {exponent, rest};
}

Value with_edges_of_log(Value x, Value result) {
  const Value finite = select(x < infinity(x), result, x);  // infinity and NaN pass through
  return select(x > 0.0f, finite,
                select(x == 0.0f, -infinity(x), select(is_nan(x), x, not_a_number(x))));
}

Value own_log(Value x) {
  const Logarithm l = logarithm(x);
  return with_edges_of_log(
      x, fma(l.exponent, 6.9313812256e-1f, fma(l.exponent, 9.0580006145e-6f, l.rest)));
}

Value own_log2(Value x) {
  const Logarithm l = logarithm(x);
  return with_edges_of_log(x, fma(l.rest, kLog2E, l.exponent));
}

// quarter_turns: 0 for sin, 1 for cos. Accurate for |x| < 2^17; beyond that the reduction loses
// bits.
Value own_sine(Value x, int quarter_turns) {
  const Value n = round_even(x * 0.636619747f);
  Value r = fma(n, -1.5703125f, x);  // pi / 2 in four parts
  r = fma(n, -0x1.fb4p-12f, r);
  r = fma(n, -0x1.444p-24f, r);
  r = fma(n, -0x1.68c234p-39f, r);
  const Value z = r * r;
  const Value sine =
      fma(r * z, fma(z, fma(z, -1.9515295891e-4f, 8.3321608736e-3f), -1.6666654611e-1f), r);
  const Value cosine = fma(
      z * z, fma(z, fma(z, 2.443315711809948e-5f, -1.388731625493765e-3f), 4.166664568298827e-2f),
      fma(z, -0.5f, 1.0f));
  const Value quadrant = cast(i32, n) + quarter_turns;
  const Value magnitude = select((quadrant & 1) != 0, cosine, sine);
  Value result = select((quadrant & 2) != 0, -magnitude, magnitude);
  if (quarter_turns == 0) result = select(x == 0.0f, x, result);  // -0 stays -0
  return select(abs(x) < infinity(x), result, not_a_number(x));
}

Value own_tanh(Value x) {
  const Value a = abs(x), z = x * x;
  Value p = fma(z, -5.70498872745e-3f, 2.06390887954e-2f);
  p = fma(p, z, -5.37397155531e-2f);
  p = fma(p, z, 1.33314422036e-1f);
  p = fma(p, z, -3.33332819422e-1f);
  const Value small = fma(p * z, x, x);
  const Value large = 1.0f - 2.0f / (own_exp(min(a, 10.0f) * 2.0f) + 1.0f);
  const Value result = select(a < 0.625f, small, select(x < 0.0f, -large, large));
  return select(is_nan(x) | (x == 0.0f), x, result);
}

class LowerMath : public Rewriter {
  bool rewrite(const Inst& inst) override {
    if (inst.type.element != f32) return false;
    switch (inst.op) {
      case Op::exp:
        bind(inst.result, own_exp(arg(inst, 0)));
        return true;
      case Op::exp2:
        bind(inst.result, own_exp2(arg(inst, 0)));
        return true;
      case Op::log:
        bind(inst.result, own_log(arg(inst, 0)));
        return true;
      case Op::log2:
        bind(inst.result, own_log2(arg(inst, 0)));
        return true;
      case Op::sin:
        bind(inst.result, own_sine(arg(inst, 0), 0));
        return true;
      case Op::cos:
        bind(inst.result, own_sine(arg(inst, 0), 1));
        return true;
      case Op::tanh:
        bind(inst.result, own_tanh(arg(inst, 0)));
        return true;
      default:
        return false;
    }
  }
};

// f16 values on a device without them: f32 rounded to f16 after each operation. For +, -, *, / and
// sqrt this gives the same bits as f16 arithmetic, because f32 has more than twice its digits.
class LowerHalfMath : public Rewriter {
  void prepare(ir::Kernel& kernel) override {
    for (ir::Variable& v : kernel.variables)
      if (v.type.element == f16) v.type.element = f32;
  }

  static Value rounded(Value x) {
    std::vector<Value> parts;
    const uint32_t lanes = x.type().lanes;
    for (uint32_t i = 0; i < lanes; ++i) parts.push_back(unpack_f16(pack_f16(vec(x[i], 0.0f)))[0]);
    if (lanes == 1) return parts[0];
    return lanes == 2 ? vec(parts[0], parts[1]) : vec(parts[0], parts[1], parts[2], parts[3]);
  }

  bool from_half(const Inst& inst) const {
    return !inst.args.empty() && source().values[inst.args[0]].element == f16;
  }

  bool rewrite(const Inst& inst) override {
    if (inst.op == Op::bitcast && from_half(inst)) {  // f16x2 to a word
      bind(inst.result, bitcast(inst.type, pack_f16(arg(inst, 0))));
      return true;
    }
    if (inst.op == Op::cast && from_half(inst)) {
      bind(inst.result, cast(inst.type.element, arg(inst, 0)));
      return true;
    }
    if (inst.type.lanes == 0 || inst.type.element != f16) return false;
    switch (inst.op) {
      case Op::constant:
        bind(inst.result,
             constant(f32, static_cast<double>(f32_from_f16(static_cast<uint16_t>(inst.bits)))));
        return true;
      case Op::bitcast:
        bind(inst.result, unpack_f16(bitcast(u32, arg(inst, 0))));
        return true;
      case Op::cast:
        bind(inst.result, rounded(cast(f32, arg(inst, 0))));
        return true;
      default:
        break;
    }
    const bool exact = inst.op == Op::read || inst.op == Op::select || inst.op == Op::neg ||
                       inst.op == Op::abs || inst.op == Op::min || inst.op == Op::max ||
                       inst.op == Op::make_vector || inst.op == Op::extract ||
                       (inst.op >= Op::subgroup_scan && inst.op <= Op::subgroup_shuffle_xor);
    Inst made = inst;
    made.result = ir::kNone;
    made.type.element = f32;
    for (ir::Value& value : made.args) value = now(value).id();
    const Value result(Builder::current().append(std::move(made)));
    bind(inst.result, exact ? result : rounded(result));
    return true;
  }
};

}  // namespace

ir::Kernel lower_math(const ir::Kernel& kernel) { return LowerMath().run(kernel); }
ir::Kernel lower_half_math(const ir::Kernel& kernel) { return LowerHalfMath().run(kernel); }

}  // namespace prism::lower_detail
