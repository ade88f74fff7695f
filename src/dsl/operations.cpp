// Arithmetic, bits, comparison, conversion and cross-lane operations.
#include <fmt/format.h>

#include "dsl/builder.h"
#include "prism/kernel.h"

namespace prism::dsl {
namespace {

using ir::Op;

Builder& builder() { return Builder::current(); }

bool any_value(DType t) { return t != b1; }
bool integer(DType t) { return is_int(t); }
bool floating(DType t) { return is_float(t); }
bool word(DType t) { return t == u32 || t == i32; }
bool integer_or_b1(DType t) { return is_int(t) || t == b1; }
bool any_type(DType) { return true; }
bool transcendental(DType t) { return t == f32 || t == f64; }
using Allowed = bool (*)(DType);

// The common type of the operands: a literal takes the type of the value beside it, a scalar widens
// to a vector.
Type common_type(std::initializer_list<const Operand*> operands) {
  Type type{u32, 0};
  for (const Operand* operand : operands) {
    if (operand->is_literal()) continue;
    const Type t = operand->value().type();
    if (type.lanes == 0 || (type.lanes == 1 && t.lanes > 1 && t.element == type.element)) type = t;
  }
  if (type.lanes == 0) type = (*operands.begin())->value().type();
  return type;
}

void check_allowed(Op op, Type type, Allowed allowed, const ir::Location& where) {
  if (!allowed(type.element))
    builder().fail(where,
                   fmt::format("{} does not support {}", ir::op_name(op), ir::type_name(type)));
}

Value unary(Op op, Operand& a, Allowed allowed) {
  const Value x = a.value();
  check_allowed(op, x.type(), allowed, a.where());
  return Value(builder().append(op, x.type(), {x.id()}, a.where()));
}

Value binary(Op op, Operand& a, Operand& b, Allowed allowed) {
  const Type type = common_type({&a, &b});
  check_allowed(op, type, allowed, b.where());
  const Value x = a.as(type), y = b.as(type);
  return Value(builder().append(op, type, {x.id(), y.id()}, b.where()));
}

Value comparison(Op op, Operand& a, Operand& b, Allowed allowed) {
  const Type type = common_type({&a, &b});
  check_allowed(op, type, allowed, b.where());
  const Value x = a.as(type), y = b.as(type);
  return Value(builder().append(op, Type{b1, type.lanes}, {x.id(), y.id()}, b.where()));
}

// An operation with fixed operand types.
Value fixed(Op op, Type result, std::initializer_list<std::pair<const Operand*, Type>> operands) {
  std::vector<ir::Value> args;
  ir::Location where;
  for (const auto& [operand, type] : operands) {
    args.push_back(operand->as(type).id());
    where = operand->where();
  }
  return Value(builder().append(op, result, std::move(args), where));
}

}  // namespace

Value operator+(Operand a, Operand b) { return binary(Op::add, a, b, any_value); }
Value operator-(Operand a, Operand b) { return binary(Op::sub, a, b, any_value); }
Value operator*(Operand a, Operand b) { return binary(Op::mul, a, b, any_value); }

Value operator/(Operand a, Operand b) {
  const DType t = common_type({&a, &b}).element;
  if (is_signed_int(t))
    builder().fail(
        b.where(),
        "signed division is div_trunc (towards zero) or div_floor (downwards): say which");
  return is_float(t) ? binary(Op::div, a, b, floating) : binary(Op::div_trunc, a, b, integer);
}

Value operator%(Operand a, Operand b) {
  if (is_signed_int(common_type({&a, &b}).element))
    builder().fail(b.where(),
                   "a signed remainder is rem_trunc (sign of the dividend) or mod_floor (of the "
                   "divisor): say which");
  return binary(Op::rem_trunc, a, b, integer);
}

Value operator-(Operand a) { return unary(Op::neg, a, any_value); }
Value operator&(Operand a, Operand b) { return binary(Op::bit_and, a, b, integer_or_b1); }
Value operator|(Operand a, Operand b) { return binary(Op::bit_or, a, b, integer_or_b1); }
Value operator^(Operand a, Operand b) { return binary(Op::bit_xor, a, b, integer_or_b1); }
Value operator~(Operand a) { return unary(Op::bit_not, a, integer); }

namespace {
// The shift count may be u32 for any operand type.
Value shift(Op op, Operand& a, Operand& count) {
  const Type type = a.value().type();
  check_allowed(op, type, integer, a.where());
  const Value n = !count.is_literal() && count.value().element() != type.element
                      ? cast(type.element, count.value())
                      : count.as(type);
  const Value same = n.type() == type ? n : splat(n, type.lanes);
  return Value(builder().append(op, type, {a.as(type).id(), same.id()}, count.where()));
}
}  // namespace

Value operator<<(Operand a, Operand b) { return shift(Op::shl, a, b); }
Value operator>>(Operand a, Operand b) { return shift(Op::shr, a, b); }
Value operator==(Operand a, Operand b) { return comparison(Op::eq, a, b, any_type); }
Value operator!=(Operand a, Operand b) { return comparison(Op::ne, a, b, any_type); }
Value operator<(Operand a, Operand b) { return comparison(Op::lt, a, b, any_value); }
Value operator<=(Operand a, Operand b) { return comparison(Op::le, a, b, any_value); }
Value operator>(Operand a, Operand b) { return comparison(Op::gt, a, b, any_value); }
Value operator>=(Operand a, Operand b) { return comparison(Op::ge, a, b, any_value); }

Value operator&&(Operand a, Operand b) {
  return fixed(Op::bit_and, Type{b1, 1}, {{&a, Type{b1, 1}}, {&b, Type{b1, 1}}});
}
Value operator||(Operand a, Operand b) {
  return fixed(Op::bit_or, Type{b1, 1}, {{&a, Type{b1, 1}}, {&b, Type{b1, 1}}});
}
Value operator!(Operand a) { return fixed(Op::bit_not, Type{b1, 1}, {{&a, Type{b1, 1}}}); }

Value div_trunc(Operand a, Operand b) { return binary(Op::div_trunc, a, b, integer); }
Value rem_trunc(Operand a, Operand b) { return binary(Op::rem_trunc, a, b, integer); }
Value div_floor(Operand a, Operand b) { return binary(Op::div_floor, a, b, integer); }
Value mod_floor(Operand a, Operand b) { return binary(Op::mod_floor, a, b, integer); }
Value mul_high(Operand a, Operand b) { return binary(Op::mul_high, a, b, word); }

Value fma(Operand a, Operand b, Operand c) {
  const Type type = common_type({&a, &b, &c});
  check_allowed(Op::fma, type, floating, c.where());
  return fixed(Op::fma, type, {{&a, type}, {&b, type}, {&c, type}});
}

Value min(Operand a, Operand b) { return binary(Op::min, a, b, any_value); }
Value max(Operand a, Operand b) { return binary(Op::max, a, b, any_value); }
Value abs(Operand a) { return unary(Op::abs, a, any_value); }
Value floor(Operand a) { return unary(Op::floor, a, floating); }
Value ceil(Operand a) { return unary(Op::ceil, a, floating); }
Value trunc(Operand a) { return unary(Op::trunc, a, floating); }
Value round_even(Operand a) { return unary(Op::round_even, a, floating); }
Value sqrt(Operand a) { return unary(Op::sqrt, a, floating); }
Value rsqrt(Operand a) { return unary(Op::rsqrt, a, transcendental); }
Value exp(Operand a) { return unary(Op::exp, a, transcendental); }
Value exp2(Operand a) { return unary(Op::exp2, a, transcendental); }
Value log(Operand a) { return unary(Op::log, a, transcendental); }
Value log2(Operand a) { return unary(Op::log2, a, transcendental); }
Value sin(Operand a) { return unary(Op::sin, a, transcendental); }
Value cos(Operand a) { return unary(Op::cos, a, transcendental); }
Value tanh(Operand a) { return unary(Op::tanh, a, transcendental); }

Value square(Operand a) {
  const Value x = a.value();
  return x * x;
}

Value is_nan(Operand a) {
  const Value x = a.value();
  return (bitcast(Type{u32, x.type().lanes}, x) & 0x7fffffffu) > 0x7f800000u;
}

Value select(Operand condition, Operand if_true, Operand if_false) {
  const Type type = common_type({&if_true, &if_false});
  const Value c = condition.value();
  if (c.element() != b1 || (c.type().lanes != 1 && c.type().lanes != type.lanes))
    builder().fail(condition.where(),
                   fmt::format("select: the condition is {}, not b1", ir::type_name(c.type())));
  const Value x = if_true.as(type), y = if_false.as(type);
  return Value(builder().append(Op::select, type, {c.id(), x.id(), y.id()}, if_false.where()));
}

Value cast(DType type, Operand a) {
  const Value x = a.value();
  if (widened(type) != type && type != f16)
    builder().fail(a.where(), fmt::format("{} is a storage type; values are {}", dtype_name(type),
                                          dtype_name(widened(type))));
  if (x.element() == type) return x;
  return Value(builder().append(Op::cast, Type{type, x.type().lanes}, {x.id()}, a.where()));
}

Value bitcast(Type type, Operand a) {
  const Value x = a.value();
  const Type from = x.type();
  if (from == type) return x;
  if (from.element == b1 || type.element == b1 ||
      dtype_bytes(from.element) * from.lanes != dtype_bytes(type.element) * type.lanes)
    builder().fail(a.where(), fmt::format("bitcast from {} to {}: the sizes differ",
                                          ir::type_name(from), ir::type_name(type)));
  return Value(builder().append(Op::bitcast, type, {x.id()}, a.where()));
}

Value extract_bits(Operand value, Operand offset, Operand count) {
  const Type type = value.value().type();
  check_allowed(Op::extract_bits, type, word, value.where());
  const Type counts{u32, 1};
  return fixed(Op::extract_bits, type, {{&value, type}, {&offset, counts}, {&count, counts}});
}

Value insert_bits(Operand base, Operand insert, Operand offset, Operand count) {
  const Type t{u32, 1};
  return fixed(Op::insert_bits, t, {{&base, t}, {&insert, t}, {&offset, t}, {&count, t}});
}

namespace {
Value words_only(Op op, Operand& a, Type from, Type to) { return fixed(op, to, {{&a, from}}); }
constexpr Type kWord{u32, 1};
}  // namespace

Value popcount(Operand a) { return words_only(Op::popcount, a, kWord, kWord); }
Value count_leading_zeros(Operand a) {
  return words_only(Op::count_leading_zeros, a, kWord, kWord);
}
Value pack_f16(Operand a) { return words_only(Op::pack_f16, a, Type{f32, 2}, kWord); }
Value unpack_f16(Operand a) { return words_only(Op::unpack_f16, a, kWord, Type{f32, 2}); }
Value pack_8(Operand a) {
  const Type type = a.value().type();
  if (type.lanes != 4) builder().fail(a.where(), "pack_8 takes a vector of four");
  check_allowed(Op::pack_8, type, word, a.where());
  return words_only(Op::pack_8, a, type, kWord);
}
Value unpack_i8(Operand a) { return words_only(Op::unpack_i8, a, kWord, Type{i32, 4}); }
Value unpack_u8(Operand a) { return words_only(Op::unpack_u8, a, kWord, Type{u32, 4}); }
Value dot4_i8(Operand a, Operand b, Operand c) {
  return fixed(Op::dot4_i8, Type{i32, 1}, {{&a, kWord}, {&b, kWord}, {&c, Type{i32, 1}}});
}
Value dot4_u8(Operand a, Operand b, Operand c) {
  return fixed(Op::dot4_u8, kWord, {{&a, kWord}, {&b, kWord}, {&c, kWord}});
}

namespace {
Value make_vector(std::initializer_list<const Operand*> parts) {
  const Type type = common_type(parts);
  std::vector<ir::Value> args;
  for (const Operand* part : parts) args.push_back(part->as(Type{type.element, 1}).id());
  return Value(builder().append(Op::make_vector,
                                Type{type.element, static_cast<uint8_t>(parts.size())},
                                std::move(args), (*parts.begin())->where()));
}
}  // namespace

Value vec(Operand a, Operand b) { return make_vector({&a, &b}); }
Value vec(Operand a, Operand b, Operand c, Operand d) { return make_vector({&a, &b, &c, &d}); }
Value splat(Operand a, uint32_t lanes) {
  return a.as(Type{a.value().element(), static_cast<uint8_t>(lanes)});
}

namespace {

Value across(Op op, Operand& a, ReduceOp reduce, uint32_t object, const ir::Location& where) {
  const Value x = a.value();
  const bool bits =
      reduce == ReduceOp::bit_and || reduce == ReduceOp::bit_or || reduce == ReduceOp::bit_xor;
  if (x.type().lanes != 1) builder().fail(where, fmt::format("{} needs a scalar", ir::op_name(op)));
  if (bits ? !integer_or_b1(x.element()) : !any_value(x.element()))
    builder().fail(where, fmt::format("{} {} does not support {}", ir::op_name(op),
                                      ir::reduce_op_name(reduce), ir::type_name(x.type())));
  ir::Inst inst;
  inst.op = op;
  inst.type = x.type();
  inst.args = {x.id()};
  inst.object = object;
  inst.bits = static_cast<uint64_t>(reduce);
  inst.where = where;
  return Value(builder().append(std::move(inst)));
}

}  // namespace

Value subgroup_reduce(ReduceOp op, Operand a, Where where) {
  return across(Op::subgroup_reduce, a, op, ir::kNone, where);
}
Value subgroup_sum(Operand a, Where where) { return subgroup_reduce(ReduceOp::add, a, where); }
Value subgroup_max(Operand a, Where where) { return subgroup_reduce(ReduceOp::max, a, where); }
Value subgroup_scan(ReduceOp op, Operand a, bool exclusive, Where where) {
  return across(Op::subgroup_scan, a, op, exclusive ? 1 : 0, where);
}
Value group_reduce(ReduceOp op, Operand a, Where where) {
  return across(Op::group_reduce, a, op, ir::kNone, where);
}
Value group_sum(Operand a, Where where) { return group_reduce(ReduceOp::add, a, where); }
Value group_max(Operand a, Where where) { return group_reduce(ReduceOp::max, a, where); }

Value subgroup_shuffle(Operand a, Operand lane, Where where) {
  const Value x = a.value();
  return Value(
      builder().append(Op::subgroup_shuffle, x.type(), {x.id(), lane.as(u32).id()}, where));
}

Value subgroup_shuffle_xor(Operand a, uint32_t mask, Where where) {
  const Value x = a.value();
  if (mask == 0 || mask >= 64 || (mask & (mask - 1)) != 0)
    builder().fail(
        where,
        fmt::format("the mask of a shuffle is a power of two below the subgroup size, not {}",
                    mask));
  ir::Inst inst;
  inst.op = Op::subgroup_shuffle_xor;
  inst.type = x.type();
  inst.args = {x.id()};
  inst.bits = mask;
  inst.where = where;
  return Value(builder().append(std::move(inst)));
}

}  // namespace prism::dsl
