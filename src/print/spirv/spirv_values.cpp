// Leaves, arithmetic, bits and comparisons in SPIR-V.
#include "print/spirv/spirv_emitter.h"

namespace prism::spirv {

using ir::Op;

Id Emitter::builtin(BuiltIn builtin) {
  const Id u32 = module_.int_type(32);
  return module_.emit(Code::Load, u32, {module_.input_variable(builtin, u32)});
}

Id Emitter::builtin_axis(BuiltIn builtin, uint32_t axis) {
  const Id u32 = module_.int_type(32);
  const Id vector = module_.vector_type(u32, 3);
  const Id loaded = module_.emit(Code::Load, vector, {module_.input_variable(builtin, vector)});
  return module_.emit(Code::CompositeExtract, u32, {loaded, axis});
}

Id Emitter::leaf(const ir::Inst& inst) {
  switch (inst.op) {
    case Op::constant:
      if (inst.type.element == DType::b1) return module_.constant_bool((inst.bits & 1) != 0);
      return module_.constant(type_id(inst.type), inst.bits,
                              static_cast<uint32_t>(8 * dtype_bytes(inst.type.element)));
    case Op::param: {
      const Id type = type_id(inst.type);
      const Id pointer =
          module_.emit(Code::AccessChain, module_.pointer_type(StorageClass::PushConstant, type),
                       {params_, module_.constant_u32(inst.object)});
      return module_.emit(Code::Load, type, {pointer});
    }
    case Op::group_id:
      return builtin_axis(BuiltIn::WorkgroupId, inst.object);
    case Op::group_count:
      return builtin_axis(BuiltIn::NumWorkgroups, inst.object);
    case Op::local_id:
      return builtin(BuiltIn::LocalInvocationIndex);
    case Op::subgroup_id:
      module_.require(Capability::GroupNonUniform);
      return builtin(BuiltIn::SubgroupId);
    case Op::subgroup_lane:
      module_.require(Capability::GroupNonUniform);
      return builtin(BuiltIn::SubgroupLocalInvocationId);
    case Op::read:
      return module_.emit(Code::Load, type_id(inst.type), {variables_[inst.object]});
    case Op::make_vector: {
      Words lanes;
      for (ir::Value v : inst.args) lanes.push_back(value(v));
      return module_.emit(Code::CompositeConstruct, type_id(inst.type), lanes);
    }
    case Op::extract:
      return module_.emit(Code::CompositeExtract, type_id(inst.type),
                          {value(inst.args[0]), inst.object});
    default:
      return 0;
  }
}

Id Emitter::uncontracted(Code code, Id type, const Words& operands) {
  const Id id = module_.emit(code, type, operands);
  module_.decorate(id, Decoration::NoContraction);
  return id;
}

Id Emitter::splat(Id scalar, ir::Type type) {
  if (type.lanes <= 1) return scalar;
  return module_.emit(Code::CompositeConstruct, type_id(type), Words(type.lanes, scalar));
}

Id Emitter::select(Id condition, ir::Type condition_type, ir::Type type, Id if_true, Id if_false) {
  // A scalar condition for a vector needs SPIR-V 1.4.
  if (condition_type.lanes <= 1) condition = splat(condition, {DType::b1, type.lanes});
  return module_.emit(Code::Select, type_id(type), {condition, if_true, if_false});
}

Id Emitter::arithmetic(const ir::Inst& inst) {
  const Id type = inst.type.lanes ? type_id(inst.type) : 0;
  const bool floating = is_float(inst.type.element);
  const bool is_signed = is_signed_int(inst.type.element);
  // min and max too: a driver may replace max(-x, 0) by -min(x, 0).
  const bool exact = inst.op == Op::add || inst.op == Op::sub || inst.op == Op::mul ||
                     inst.op == Op::div || inst.op == Op::min || inst.op == Op::max;
  const auto operand = [&](size_t i) {
    return inst.args.size() <= i ? 0 : exact ? hidden(inst.args[i]) : value(inst.args[i]);
  };
  const Id a = operand(0);
  const Id b = operand(1);
  switch (inst.op) {
    case Op::add:
      return floating ? uncontracted(Code::FAdd, type, {a, b})
                      : module_.emit(Code::IAdd, type, {a, b});
    case Op::sub:
      return floating ? uncontracted(Code::FSub, type, {a, b})
                      : module_.emit(Code::ISub, type, {a, b});
    case Op::mul:
      return floating ? uncontracted(Code::FMul, type, {a, b})
                      : module_.emit(Code::IMul, type, {a, b});
    case Op::div:
      return uncontracted(Code::FDiv, type, {a, b});
    case Op::div_plain:
      return module_.emit(is_signed ? Code::SDiv : Code::UDiv, type, {a, b});
    case Op::mul_high: {
      const Id pair = module_.declare(Code::TypeStruct, {type, type});
      const Id product =
          module_.emit(is_signed ? Code::SMulExtended : Code::UMulExtended, pair, {a, b});
      return module_.emit(Code::CompositeExtract, type, {product, 1});
    }
    case Op::fma:
      return fma(inst);
    case Op::neg:
      return module_.emit(floating ? Code::FNegate : Code::SNegate, type, {a});
    case Op::abs: {
      if (floating) return module_.glsl(Glsl::FAbs, type, {a});
      if (!is_signed) return a;
      // Not SAbs, which is undefined for the smallest integer.
      const Id negative = compare(Op::lt, inst.type, a, module_.zero(type));
      return module_.emit(Code::Select, type,
                          {negative, module_.emit(Code::SNegate, type, {a}), a});
    }
    case Op::min:
      return module_.emit(Code::Select, type, {compare(Op::lt, inst.type, b, a), b, a});
    case Op::max:
      return module_.emit(Code::Select, type, {compare(Op::lt, inst.type, a, b), b, a});
    default:
      return 0;
  }
}

Id Emitter::math(const ir::Inst& inst) {
  struct Row {
    Op op;
    Glsl function;
    bool has_64_bits;
  };
  static constexpr Row kRows[] = {
      {Op::floor, Glsl::Floor, true}, {Op::ceil, Glsl::Ceil, true},
      {Op::trunc, Glsl::Trunc, true}, {Op::round_even, Glsl::RoundEven, true},
      {Op::sqrt, Glsl::Sqrt, true},   {Op::rsqrt, Glsl::InverseSqrt, true},
      {Op::exp, Glsl::Exp, false},    {Op::exp2, Glsl::Exp2, false},
      {Op::log, Glsl::Log, false},    {Op::log2, Glsl::Log2, false},
      {Op::sin, Glsl::Sin, false},    {Op::cos, Glsl::Cos, false},
      {Op::tanh, Glsl::Tanh, false},
  };
  for (const Row& row : kRows) {
    if (row.op != inst.op) continue;
    if (!row.has_64_bits && inst.type.element == DType::f64)
      fail(inst, "GLSL.std.450 computes it in 16 and 32 bits only; compute it in f32");
    return module_.glsl(row.function, type_id(inst.type), {value(inst.args[0])});
  }
  return 0;
}

// Bit-field instructions take one offset and count for a whole vector; the kernel language takes
// one per lane.
Id Emitter::lane_by_lane(const ir::Inst& inst, Code code) {
  Words lanes;
  const Id scalar = type_id({inst.type.element, 1});
  for (uint32_t lane = 0; lane < inst.type.lanes; ++lane) {
    Words operands;
    for (ir::Value v : inst.args) {
      const ir::Type type = type_of(v);
      operands.push_back(type.lanes <= 1
                             ? value(v)
                             : module_.emit(Code::CompositeExtract, scalar, {value(v), lane}));
    }
    lanes.push_back(module_.emit(code, scalar, operands));
  }
  return lanes.size() == 1 ? lanes[0]
                           : module_.emit(Code::CompositeConstruct, type_id(inst.type), lanes);
}

Id Emitter::bits(const ir::Inst& inst) {
  const Id type = inst.type.lanes ? type_id(inst.type) : 0;
  const bool logical = inst.type.element == DType::b1;
  const bool is_signed = is_signed_int(inst.type.element);
  const Id a = inst.args.size() > 0 ? value(inst.args[0]) : 0;
  const Id b = inst.args.size() > 1 ? value(inst.args[1]) : 0;
  switch (inst.op) {
    case Op::bit_and:
      return module_.emit(logical ? Code::LogicalAnd : Code::BitwiseAnd, type, {a, b});
    case Op::bit_or:
      return module_.emit(logical ? Code::LogicalOr : Code::BitwiseOr, type, {a, b});
    case Op::bit_xor:
      return module_.emit(logical ? Code::LogicalNotEqual : Code::BitwiseXor, type, {a, b});
    case Op::bit_not:
      return module_.emit(logical ? Code::LogicalNot : Code::Not, type, {a});
    case Op::shl_plain:
      return module_.emit(Code::ShiftLeftLogical, type, {a, b});
    case Op::shr_plain:
      return module_.emit(is_signed ? Code::ShiftRightArithmetic : Code::ShiftRightLogical, type,
                          {a, b});
    case Op::extract_bits:
      return lane_by_lane(inst, is_signed ? Code::BitFieldSExtract : Code::BitFieldUExtract);
    case Op::insert_bits:
      return lane_by_lane(inst, Code::BitFieldInsert);
    case Op::popcount:
      return module_.emit(Code::BitCount, type, {a});
    case Op::count_leading_zeros: {
      // FindUMsb(0) is all ones, so that 31 - (-1) gives the required 32.
      const Id top = module_.glsl(Glsl::FindUMsb, type, {a});
      const Id last = splat(module_.constant_u32(31), inst.type);
      return module_.emit(Code::ISub, type, {last, top});
    }
    default:
      return 0;
  }
}

Id Emitter::compare(Op op, ir::Type operands, Id a, Id b) {
  struct Row {
    Op op;
    Code floating, is_signed, is_unsigned;
  };
  static constexpr Row kRows[] = {
      {Op::eq, Code::FOrdEqual, Code::IEqual, Code::IEqual},
      {Op::ne, Code::FUnordNotEqual, Code::INotEqual, Code::INotEqual},
      {Op::lt, Code::FOrdLessThan, Code::SLessThan, Code::ULessThan},
      {Op::le, Code::FOrdLessThanEqual, Code::SLessThanEqual, Code::ULessThanEqual},
      {Op::gt, Code::FOrdGreaterThan, Code::SGreaterThan, Code::UGreaterThan},
      {Op::ge, Code::FOrdGreaterThanEqual, Code::SGreaterThanEqual, Code::UGreaterThanEqual},
  };
  const Id type = type_id({DType::b1, operands.lanes});
  if (operands.element == DType::b1)
    return module_.emit(op == Op::eq ? Code::LogicalEqual : Code::LogicalNotEqual, type, {a, b});
  // Mesa 22.3 compares a widened i32 with a constant i64 wrongly: 0 < 1 is false. Flipping the sign
  // bits gives an unsigned comparison, which it gets right.
  if (operands.element == DType::i64 && op != Op::eq && op != Op::ne) {
    const ir::Type bits{DType::u64, operands.lanes};
    const Id sign = splat(module_.constant(scalar_id(DType::u64), uint64_t{1} << 63, 64), bits);
    a = module_.emit(Code::BitwiseXor, type_id(bits), {a, sign});
    b = module_.emit(Code::BitwiseXor, type_id(bits), {b, sign});
    operands = bits;
  }
  for (const Row& row : kRows) {
    if (row.op != op) continue;
    const Code code = is_float(operands.element)        ? row.floating
                      : is_signed_int(operands.element) ? row.is_signed
                                                        : row.is_unsigned;
    return module_.emit(code, type, {a, b});
  }
  return 0;
}

Id Emitter::comparison(const ir::Inst& inst) {
  switch (inst.op) {
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
      return compare(inst.op, type_of(inst.args[0]), value(inst.args[0]), value(inst.args[1]));
    case Op::select:
      return select(value(inst.args[0]), type_of(inst.args[0]), inst.type, hidden(inst.args[1]),
                    hidden(inst.args[2]));
    default:
      return 0;
  }
}

}  // namespace prism::spirv
