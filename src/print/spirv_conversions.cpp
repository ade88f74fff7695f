// Conversions, packing and packed dot products in SPIR-V.
#include "print/spirv.h"
#include "print/spirv_emitter.h"

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
    case Op::unpack_f16:
      return unpack_f16(a);
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

Id Emitter::pack_f16(Id value) {
  const Id u32 = module_.int_type(32);
  if (capabilities_.math_f16) {
    const Id halves = module_.emit(Code::FConvert, type_id({DType::f16, 2}), {value});
    return module_.emit(Code::Bitcast, u32, {halves});
  }
  // PackHalf2x16 rounds as it likes. Rounded to 16 bits and back first, there is nothing left to
  // round. The storage capability is enough for the two conversions.
  if (capabilities_.storage_f16) {
    module_.require(Capability::StorageBuffer16BitAccess);
    const Id half = module_.vector_type(module_.float_type(16), 2);
    const Id rounded = module_.emit(Code::FConvert, half, {value});
    value = module_.emit(Code::FConvert, type_id({DType::f32, 2}), {rounded});
  }
  return module_.glsl(Glsl::PackHalf2x16, u32, {value});
}

Id Emitter::unpack_f16(Id word) {
  const Id floats = type_id({DType::f32, 2});
  if (!capabilities_.math_f16) return module_.glsl(Glsl::UnpackHalf2x16, floats, {word});
  // Not UnpackHalf2x16: a driver was seen to drop the rounding of a value packed and unpacked
  // again.
  const Id halves = module_.emit(Code::Bitcast, type_id({DType::f16, 2}), {word});
  return module_.emit(Code::FConvert, floats, {halves});
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
  // The accumulating instruction saturates; the language wraps.
  const Id dot =
      module_.emit(is_signed ? Code::SDot : Code::UDot, u32,
                   {value(inst.args[0]), value(inst.args[1]), kPackedVectorFormat4x8Bit});
  return module_.emit(Code::IAdd, u32, {dot, value(inst.args[2])});
}

}  // namespace prism::spirv
