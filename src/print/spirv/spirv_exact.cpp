// Bit-exact float arithmetic for drivers that are not: fma rounded once, and signed zeros.
#include <algorithm>

#include "print/spirv/spirv.h"
#include "print/spirv/spirv_emitter.h"

namespace prism::spirv {

using ir::Op;

// Some drivers simplify x * 0 to 0, x + 0 to x and select(c, -1, 0) to -select(c, 1, 0) for known
// numbers, ignoring the sign of zero. They cannot know launch inputs and values computed from
// hidden operands; all others may be visible.
void Emitter::note_opaque(const ir::Inst& inst) {
  if (inst.result == ir::kNone || !has(kHideConstants)) return;
  const auto is_opaque = [&](ir::Value v) { return opaque_[v]; };
  bool opaque = false;
  switch (inst.op) {
    case Op::param:
      opaque = true;
      break;
    case Op::load:
      opaque = inst.args.size() == 1 && kernel_.memories[inst.object].space == ir::Space::buffer &&
               kernel_.memories[inst.object].access == ir::Access::read;
      break;
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::min:
    case Op::max:
    case Op::select:
    case Op::fma:
      opaque = is_float(inst.type.element);
      break;
    case Op::neg:
    case Op::abs:
    case Op::extract:
    case Op::make_vector:
      opaque = std::ranges::all_of(inst.args, is_opaque);
      break;
    default:
      break;
  }
  opaque_[inst.result] = opaque;
}

// The same value, hidden from the driver: its bits combined with a zero that is a launch input.
Id Emitter::hidden(ir::Value v) {
  const ir::Type type = type_of(v);
  if (!has(kHideConstants) || opaque_[v] || !is_float(type.element)) return value(v);
  if (type.element == DType::f16) {
    const ir::Type wide{DType::f32, type.lanes};
    return convert(with_launch_zero(convert(value(v), type, wide), wide), wide, type);
  }
  return with_launch_zero(value(v), type);
}

Id Emitter::with_launch_zero(Id id, ir::Type type) {
  const ir::Type bits{type.element == DType::f64 ? DType::u64 : DType::u32, type.lanes};
  const Id zero = splat(convert(launch_zero_, {DType::u32, 1}, {bits.element, 1}), bits);
  const Id word = module_.emit(Code::Bitcast, type_id(bits), {id});
  return module_.emit(Code::Bitcast, type_id(type),
                      {module_.emit(Code::BitwiseOr, type_id(bits), {word, zero})});
}

// high + low equals a + b exactly (Knuth).
Emitter::Pair Emitter::two_sum(Id a, Id b, Id type) {
  const Id high = uncontracted(Code::FAdd, type, {a, b});
  const Id part = uncontracted(Code::FSub, type, {high, a});
  const Id rest = uncontracted(Code::FSub, type, {high, part});
  const Id low = uncontracted(
      Code::FAdd, type,
      {uncontracted(Code::FSub, type, {a, rest}), uncontracted(Code::FSub, type, {b, part})});
  return {high, low};
}

// high + low equals a * b exactly (Dekker): each factor is split into halves whose products fit.
Emitter::Pair Emitter::two_product(Id a, Id b, ir::Type type) {
  const Id id = type_id(type);
  const bool wide = type.element == DType::f64;
  // 2^27 + 1 and 2^12 + 1: half the digits.
  const uint64_t splitter = wide ? 0x41a0000002000000 : 0x45800800;
  const Id factor =
      splat(module_.constant(scalar_id(type.element), splitter, wide ? 64 : 32), type);
  const auto split = [&](Id x) -> Pair {
    const Id scaled = uncontracted(Code::FMul, id, {factor, x});
    const Id high =
        uncontracted(Code::FSub, id, {scaled, uncontracted(Code::FSub, id, {scaled, x})});
    return {high, uncontracted(Code::FSub, id, {x, high})};
  };
  const Pair x = split(a), y = split(b);
  const auto times = [&](Id p, Id q) { return uncontracted(Code::FMul, id, {p, q}); };
  const Id high = times(a, b);
  Id left = uncontracted(Code::FSub, id, {high, times(x.high, y.high)});
  left = uncontracted(Code::FSub, id, {left, times(x.low, y.high)});
  left = uncontracted(Code::FSub, id, {left, times(x.high, y.low)});
  return {high, uncontracted(Code::FSub, id, {times(x.low, y.low), left})};
}

// a + b rounded to odd: truncated, with the last bit set if it is inexact. Rounding the result to
// fewer digits equals a single rounding of the exact sum.
Id Emitter::odd_sum(Id a, Id b, ir::Type type) {
  const Id id = type_id(type), bool_id = type_id({DType::b1, type.lanes});
  const bool wide = type.element == DType::f64;
  const ir::Type bits{wide ? DType::u64 : DType::u32, type.lanes};
  const Id bits_id = type_id(bits);
  const Pair sum = two_sum(a, b, id);
  // Ordered comparisons: an infinity is exact, though the difference is NaN.
  const Id zero = module_.zero(id);
  const Id above = compare(Op::gt, type, sum.low, zero),
           below = compare(Op::lt, type, sum.low, zero);
  const Id inexact = module_.emit(Code::LogicalOr, bool_id, {above, below});
  const Id larger =
      module_.emit(Code::LogicalEqual, bool_id, {above, compare(Op::gt, type, sum.high, zero)});
  const auto number = [&](uint64_t n) {
    return splat(module_.constant(scalar_id(bits.element), n, wide ? 64 : 32), bits);
  };
  const Id word = module_.emit(Code::Bitcast, bits_id, {sum.high});
  const Id last = module_.emit(Code::BitwiseAnd, bits_id, {word, number(1)});
  const Id even = compare(Op::eq, bits, last, module_.zero(bits_id));
  const Id adjust = module_.emit(Code::LogicalAnd, bool_id, {inexact, even});
  const Id step = module_.emit(Code::Select, bits_id, {larger, number(1), number(~uint64_t{0})});
  const Id moved = module_.emit(Code::IAdd, bits_id, {word, step});
  const Id odd = module_.emit(Code::Select, bits_id, {adjust, moved, word});
  return module_.emit(Code::Bitcast, id, {odd});
}

Id Emitter::fma(const ir::Inst& inst) {
  const ir::Type type = inst.type;
  const Id id = type_id(type);
  const Id a = hidden(inst.args[0]), b = hidden(inst.args[1]), c = hidden(inst.args[2]);
  const bool no_words = type.element == DType::f64 && !capabilities_.math_i64;
  if (has(kFusedMultiplyAdd) || no_words) return module_.glsl(Glsl::Fma, id, {a, b, c});
  if (type.element == DType::f16 ||
      (type.element == DType::f32 && capabilities_.math_f64 && capabilities_.math_i64)) {
    // The product is exact in twice the width.
    const ir::Type wide{type.element == DType::f16 ? DType::f32 : DType::f64, type.lanes};
    const Id product =
        uncontracted(Code::FMul, type_id(wide), {convert(a, type, wide), convert(b, type, wide)});
    return convert(odd_sum(product, convert(c, type, wide), wide), wide, type);
  }
  // Boldo and Melquiond's algorithm without a wider type: product and sum in two parts each, the
  // remainder rounded to odd.
  const Pair product = two_product(a, b, type);
  const Pair low = two_sum(c, product.low, id);
  const Pair high = two_sum(product.high, low.high, id);
  const Id rest = odd_sum(low.low, high.low, type);
  const Id exact = uncontracted(Code::FAdd, id, {high.high, rest});
  // Infinities, NaN and factors too large to split give NaN: use the plain result there.
  const Id plain = uncontracted(Code::FAdd, id, {product.high, c});
  return module_.emit(Code::Select, id, {compare(Op::eq, type, exact, exact), exact, plain});
}

}  // namespace prism::spirv
