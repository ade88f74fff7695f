// Conversions, packing and packed dot products in SPIR-V.
#include "print/spirv/spirv.h"
#include "print/spirv/spirv_emitter.h"

namespace prism::spirv {

using ir::Op;

namespace {

uint32_t width(DType element) { return static_cast<uint32_t>(8 * dtype_bytes(element)); }

}  // namespace

Id Emitter::convert(Id from, ir::Type from_type, ir::Type to_type) {
  const DType source = from_type.element, target = to_type.element;
  const Id type = type_id(to_type);
  if (source == target) return from;
  if (target == DType::b1)
    return compare(Op::ne, from_type, from, module_.zero(type_id(from_type)));
  if (source == DType::b1) {
    const uint64_t one = target == DType::f16   ? 0x3c00
                         : target == DType::f32 ? 0x3f800000
                         : target == DType::f64 ? 0x3ff0000000000000
                                                : 1;
    const Id ones = splat(module_.constant(scalar_id(target), one, width(target)), to_type);
    return module_.emit(Code::Select, type, {from, ones, module_.zero(type)});
  }
  if (is_float(source) && is_float(target)) return module_.emit(Code::FConvert, type, {from});
  if (is_float(source))
    return module_.emit(is_signed_int(target) ? Code::ConvertFToS : Code::ConvertFToU, type,
                        {from});
  if (is_float(target))
    return module_.emit(is_signed_int(source) ? Code::ConvertSToF : Code::ConvertUToF, type,
                        {from});
  if (width(source) == width(target)) return from;
  return module_.emit(is_signed_int(source) ? Code::SConvert : Code::UConvert, type, {from});
}

Id Emitter::conversion(const ir::Inst& inst) {
  const Id a = inst.args.empty() ? 0 : value(inst.args[0]);
  switch (inst.op) {
    case Op::cast:
    case Op::cast_plain:
      return convert(a, type_of(inst.args[0]), inst.type);
    case Op::bitcast: {
      const Id type = type_id(inst.type);
      if (type == type_id(type_of(inst.args[0]))) return a;
      return module_.emit(Code::Bitcast, type, {a});
    }
    case Op::pack_f16:
      return pack_f16(a);
    case Op::unpack_f16: {
      // UnpackHalf2x16 may flush subnormal numbers to zero.
      if (!capabilities_.math_f16)
        return module_.glsl(Glsl::UnpackHalf2x16, type_id(inst.type), {a});
      const Id halves = module_.emit(Code::Bitcast, type_id({DType::f16, 2}), {a});
      return module_.emit(Code::FConvert, type_id(inst.type), {halves});
    }
    case Op::pack_8:
      return pack_8(a);
    case Op::unpack_i8:
      return unpack_8(a, true);
    case Op::unpack_u8:
      return unpack_8(a, false);
    case Op::dot4_i8:
      return dot4(inst, true);
    case Op::dot4_u8:
      return dot4(inst, false);
    default:
      return 0;
  }
}

// Integer arithmetic, rounding to nearest even. PackHalf2x16 has no defined rounding, and one
// driver (580, on an H200) drops a conversion to f16 that is unpacked again, as f16 arithmetic in
// f32 does.
Id Emitter::pack_f16(Id value) {
  const ir::Type pair{DType::u32, 2};
  const Id words = type_id(pair), floats = type_id({DType::f32, 2});
  const auto number = [&](uint32_t n) { return splat(module_.constant_u32(n), pair); };
  const auto apply = [&](Code code, Id a, Id b) { return module_.emit(code, words, {a, b}); };
  const auto choose = [&](Id condition, Id a, Id b) {
    return module_.emit(Code::Select, words, {condition, a, b});
  };
  const Id bits = module_.emit(Code::Bitcast, words, {value});
  const Id sign =
      apply(Code::BitwiseAnd, apply(Code::ShiftRightLogical, bits, number(16)), number(0x8000));
  const Id size = apply(Code::BitwiseAnd, bits, number(0x7fffffff));
  // Below 2^-14 adding 0.5 aligns the digits, and the adder rounds.
  const Id half = splat(module_.constant(module_.float_type(32), 0x3f000000, 32), {DType::f32, 2});
  const Id moved =
      uncontracted(Code::FAdd, floats, {module_.emit(Code::Bitcast, floats, {size}), half});
  const Id small =
      apply(Code::ISub, module_.emit(Code::Bitcast, words, {moved}), number(0x3f000000));
  const Id odd =
      apply(Code::BitwiseAnd, apply(Code::ShiftRightLogical, size, number(13)), number(1));
  const Id rebased = apply(Code::IAdd, apply(Code::ISub, size, number(0x38000000 - 0xfff)), odd);
  const Id normal = apply(Code::ShiftRightLogical, rebased, number(13));
  const Id finite = choose(compare(Op::lt, pair, size, number(0x38800000)), small, normal);
  const Id not_finite =
      choose(compare(Op::gt, pair, size, number(0x7f800000)), number(0x7e00), number(0x7c00));
  const Id rounded = choose(compare(Op::lt, pair, size, number(0x47800000)), finite, not_finite);
  const Id halves = apply(Code::BitwiseOr, sign, rounded);
  const Id u32 = module_.int_type(32);
  return module_.emit(Code::BitFieldInsert, u32,
                      {module_.emit(Code::CompositeExtract, u32, {halves, 0}),
                       module_.emit(Code::CompositeExtract, u32, {halves, 1}),
                       module_.constant_u32(16), module_.constant_u32(16)});
}

Id Emitter::pack_8(Id value) {
  const Id u32 = module_.int_type(32);
  Id word = module_.emit(Code::CompositeExtract, u32, {value, 0});
  for (uint32_t lane = 1; lane < 4; ++lane) {
    const Id part = module_.emit(Code::CompositeExtract, u32, {value, lane});
    word = module_.emit(Code::BitFieldInsert, u32,
                        {word, part, module_.constant_u32(8 * lane), module_.constant_u32(8)});
  }
  return word;
}

Id Emitter::unpack_8(Id word, bool is_signed) {
  const Id u32 = module_.int_type(32);
  Words lanes;
  for (uint32_t lane = 0; lane < 4; ++lane)
    lanes.push_back(module_.emit(is_signed ? Code::BitFieldSExtract : Code::BitFieldUExtract, u32,
                                 {word, module_.constant_u32(8 * lane), module_.constant_u32(8)}));
  return module_.emit(Code::CompositeConstruct, module_.vector_type(u32, 4), lanes);
}

Id Emitter::dot4(const ir::Inst& inst, bool is_signed) {
  module_.require(Capability::DotProduct);
  module_.require(Capability::DotProductInput4x8BitPacked);
  module_.require_extension("SPV_KHR_integer_dot_product");
  const Id u32 = module_.int_type(32);
  // The accumulating instruction saturates; the kernel language wraps.
  const Id dot =
      module_.emit(is_signed ? Code::SDot : Code::UDot, u32,
                   {value(inst.args[0]), value(inst.args[1]), kPackedVectorFormat4x8Bit});
  return module_.emit(Code::IAdd, u32, {dot, value(inst.args[2])});
}

}  // namespace prism::spirv
