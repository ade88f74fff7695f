// Float arithmetic to the last bit where a driver cuts corners: fma rounded once, and zeros that
// keep their sign.
#include <algorithm>

#include "print/spirv.h"
#include "print/spirv_emitter.h"

namespace prism::spirv {

using ir::Op;

// Some drivers take x * 0 for 0 and x + 0 for x when they know the zero, whatever x and its sign
// are. What they cannot know is what comes with the launch and what was computed from hidden
// operands; they may see through the rest.
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
    case Op::fma:
      opaque = is_float(inst.type.element);
      break;
    case Op::neg:
    case Op::abs:
    case Op::extract:
    case Op::make_vector:
      opaque = std::ranges::all_of(inst.args, is_opaque);
      break;
    case Op::select:
      opaque = opaque_[inst.args[1]] && opaque_[inst.args[2]];
      break;
    default:
      break;
  }
  opaque_[inst.result] = opaque;
}

// The same value, but not to the driver's knowledge: its bits with those of a zero that comes with
// the launch.
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

// In twice the width the product is exact. The sum is rounded to odd (its last bit set when
// anything was lost), so that rounding it once more to the narrow type gives what one rounding of
// the exact value gives.
Id Emitter::fma(const ir::Inst& inst) {
  const ir::Type type = inst.type;
  const bool half = type.element == DType::f16;
  const bool can_widen =
      half || (type.element == DType::f32 && capabilities_.math_f64 && capabilities_.math_i64);
  if (has(kFusedMultiplyAdd) || !can_widen)
    return module_.glsl(Glsl::Fma, type_id(type),
                        {hidden(inst.args[0]), hidden(inst.args[1]), hidden(inst.args[2])});
  const ir::Type wide{half ? DType::f32 : DType::f64, type.lanes};
  const ir::Type bits{half ? DType::u32 : DType::u64, type.lanes};
  const Id wide_id = type_id(wide), bits_id = type_id(bits),
           bool_id = type_id({DType::b1, type.lanes});
  const Id a = convert(value(inst.args[0]), type, wide),
           b = convert(value(inst.args[1]), type, wide);
  const Id c = convert(hidden(inst.args[2]), type, wide);
  const Id product = uncontracted(Code::FMul, wide_id, {a, b});
  const Id sum = uncontracted(Code::FAdd, wide_id, {product, c});

  // What the sum lost, exactly (Knuth's two-sum).
  const Id part = uncontracted(Code::FSub, wide_id, {sum, product});
  const Id rest = uncontracted(Code::FSub, wide_id, {sum, part});
  const Id lost = uncontracted(Code::FAdd, wide_id,
                               {uncontracted(Code::FSub, wide_id, {product, rest}),
                                uncontracted(Code::FSub, wide_id, {c, part})});

  // Ordered comparisons: of an infinity nothing was lost, though the difference is NaN.
  const Id zero = module_.zero(wide_id);
  const Id above = compare(Op::gt, wide, lost, zero), below = compare(Op::lt, wide, lost, zero);
  const Id inexact = module_.emit(Code::LogicalOr, bool_id, {above, below});
  const Id larger =
      module_.emit(Code::LogicalEqual, bool_id, {above, compare(Op::gt, wide, sum, zero)});
  const uint32_t width = half ? 32 : 64;
  const Id one = splat(module_.constant(scalar_id(bits.element), 1, width), bits);
  const Id minus_one = splat(module_.constant(scalar_id(bits.element), ~uint64_t{0}, width), bits);
  const Id word = module_.emit(Code::Bitcast, bits_id, {sum});
  const Id last = module_.emit(Code::BitwiseAnd, bits_id, {word, one});
  const Id even = compare(Op::eq, bits, last, module_.zero(bits_id));
  const Id adjust = module_.emit(Code::LogicalAnd, bool_id, {inexact, even});
  const Id step = module_.emit(Code::Select, bits_id, {larger, one, minus_one});
  const Id moved = module_.emit(Code::IAdd, bits_id, {word, step});
  const Id odd = module_.emit(Code::Select, bits_id, {adjust, moved, word});
  return convert(module_.emit(Code::Bitcast, wide_id, {odd}), wide, type);
}

}  // namespace prism::spirv
