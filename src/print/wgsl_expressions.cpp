// WGSL: types, literals, and what each operation is written as.
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "print/wgsl_printer.h"

namespace prism {
namespace {

struct PreludeFunction {
  const char* name;
  const char* text;
};

// What passes through prism_zero() (declarations) is no constant to WGSL, so nothing made from it
// is computed, and refused, when the text is compiled: infinities, and operations on literals that
// overflow.
constexpr PreludeFunction kPrelude[] = {
    {"prism_unpack_i8",
     "fn prism_unpack_i8(x: u32) -> vec4<i32> {\n  let y = bitcast<i32>(x);\n"
     "  return vec4<i32>(extractBits(y, 0u, 8u), extractBits(y, 8u, 8u), extractBits(y, 16u, 8u), "
     "extractBits(y, 24u, "
     "8u));\n}\n"},
    {"prism_unpack_u8",
     "fn prism_unpack_u8(x: u32) -> vec4<u32> {\n"
     "  return vec4<u32>(x & 0xffu, (x >> 8u) & 0xffu, (x >> 16u) & 0xffu, x >> 24u);\n}\n"},
    {"prism_pack_8",
     "fn prism_pack_8(x: vec4<u32>) -> u32 {\n"
     "  return (x.x & 0xffu) | ((x.y & 0xffu) << 8u) | ((x.z & 0xffu) << 16u) | (x.w << "
     "24u);\n}\n"},
    {"prism_mul_high_i32",
     "fn prism_mul_high_i32(a: i32, b: i32) -> i32 {\n"
     "  let high = prism_mul_high_u32(bitcast<u32>(a), bitcast<u32>(b));\n"
     "  return bitcast<i32>(high - select(0u, bitcast<u32>(b), a < 0) - select(0u, "
     "bitcast<u32>(a), b < 0));\n}\n"},
    {"prism_mul_high_u32",
     "fn prism_mul_high_u32(a: u32, b: u32) -> u32 {\n"
     "  let low = (a & 0xffffu) * (b & 0xffffu);\n"
     "  let middle = (a >> 16u) * (b & 0xffffu) + (low >> 16u);\n"
     "  let other = (a & 0xffffu) * (b >> 16u) + (middle & 0xffffu);\n"
     "  return (a >> 16u) * (b >> 16u) + (middle >> 16u) + (other >> 16u);\n}\n"},
    {"prism_f32", "fn prism_f32(bits: u32) -> f32 { return bitcast<f32>(bits ^ prism_zero()); }\n"},
    {"prism_u32", "fn prism_u32(x: u32) -> u32 { return x ^ prism_zero(); }\n"},
};

const char* infix(ir::Op op) {
  switch (op) {
    case ir::Op::add:
      return "+";
    case ir::Op::sub:
      return "-";
    case ir::Op::mul:
      return "*";
    case ir::Op::div:
    case ir::Op::div_plain:
      return "/";
    case ir::Op::bit_and:
      return "&";
    case ir::Op::bit_or:
      return "|";
    case ir::Op::bit_xor:
      return "^";
    case ir::Op::eq:
      return "==";
    case ir::Op::ne:
      return "!=";
    case ir::Op::lt:
      return "<";
    case ir::Op::le:
      return "<=";
    case ir::Op::gt:
      return ">";
    case ir::Op::ge:
      return ">=";
    default:
      return nullptr;
  }
}

const char* function_name(ir::Op op) {
  switch (op) {
    case ir::Op::abs:
      return "abs";
    case ir::Op::floor:
      return "floor";
    case ir::Op::ceil:
      return "ceil";
    case ir::Op::trunc:
      return "trunc";
    case ir::Op::round_even:
      return "round";
    case ir::Op::sqrt:
      return "sqrt";
    case ir::Op::rsqrt:
      return "inverseSqrt";
    case ir::Op::exp:
      return "exp";
    case ir::Op::exp2:
      return "exp2";
    case ir::Op::log:
      return "log";
    case ir::Op::log2:
      return "log2";
    case ir::Op::sin:
      return "sin";
    case ir::Op::cos:
      return "cos";
    case ir::Op::tanh:
      return "tanh";
    case ir::Op::extract_bits:
      return "extractBits";
    case ir::Op::insert_bits:
      return "insertBits";
    case ir::Op::popcount:
      return "countOneBits";
    case ir::Op::count_leading_zeros:
      return "countLeadingZeros";
    case ir::Op::pack_f16:
      return "pack2x16float";
    case ir::Op::unpack_f16:
      return "unpack2x16float";
    case ir::Op::unpack_i8:
      return "prism_unpack_i8";
    case ir::Op::unpack_u8:
      return "prism_unpack_u8";
    default:
      return nullptr;
  }
}

}  // namespace

std::string wgsl_type(ir::Type type) {
  const std::string element = type.element == DType::b1 ? "bool" : dtype_name(type.element);
  return type.lanes > 1 ? fmt::format("vec{}<{}>", type.lanes, element) : element;
}

std::string wgsl_prelude(const std::string& text) {
  std::string prelude;
  // Each is written before those that call it.
  for (const PreludeFunction& item : kPrelude)
    if (text.find(item.name) != std::string::npos || prelude.find(item.name) != std::string::npos)
      prelude = item.text + prelude;
  return prelude;
}

std::string WgslPrinter::literal(DType type, uint64_t bits) const {
  const auto word = static_cast<uint32_t>(bits);
  switch (type) {
    case DType::b1:
      return bits ? "true" : "false";
    case DType::u32:
      return fmt::format("{}u", word);
    // The smallest number is no literal: it would be written as minus a number that is too large.
    case DType::i32:
      return word == 0x80000000u ? "bitcast<i32>(0x80000000u)"
                                 : fmt::format("{}i", static_cast<int32_t>(word));
    case DType::f32: {
      const float value = std::bit_cast<float>(word);
      // A compiler may merge the constants of both zeros, so minus zero is none.
      if (!std::isfinite(value) || word == 0x80000000u) return hidden(type, bits);
      // Numbers below the normal ones and the very largest do not survive everywhere as decimals.
      if ((!std::isnormal(value) && word != 0) || std::fabs(value) > 3.4e38f)
        return fmt::format("bitcast<f32>(0x{:08x}u)", word);
      return fmt::format("{}f", value);
    }
    case DType::f16: {
      const float value = f32_from_f16(static_cast<uint16_t>(bits));
      if (!std::isfinite(value) || (word & 0x7fffu) == 0) return hidden(type, bits);
      return fmt::format("{}h", value);
    }
    default:
      cannot(fmt::format("a literal of {}", dtype_name(type)));
  }
}

// An operation on literals alone would be computed, and perhaps refused, by WGSL's compiler;
// hidden, it is not.
std::string WgslPrinter::hidden(DType type, uint64_t bits) const {
  const auto word = static_cast<uint32_t>(bits);
  switch (type) {
    case DType::b1:
      return fmt::format("(prism_u32({}u) != 0u)", bits ? 1 : 0);
    case DType::u32:
      return fmt::format("prism_u32({}u)", word);
    case DType::i32:
      return fmt::format("bitcast<i32>(prism_u32(0x{:08x}u))", word);
    case DType::f32:
      return fmt::format("prism_f32(0x{:08x}u)", word);
    case DType::f16:
      return fmt::format(
          "f16({})",
          hidden(DType::f32, std::bit_cast<uint32_t>(f32_from_f16(static_cast<uint16_t>(bits)))));
    default:
      return literal(type, bits);
  }
}

std::vector<std::string> WgslPrinter::arguments(const Inst& inst) const {
  std::vector<std::string> texts;
  bool literals = true;
  for (Value arg : inst.args) {
    texts.push_back(use(arg));
    literals &= constants_[arg].has_value();
  }
  if (literals)
    for (size_t i = 0; i < texts.size(); ++i)
      texts[i] = hidden(type_of(inst.args[i]).element, *constants_[inst.args[i]]);
  return texts;
}

// A shift count must be unsigned, whatever is shifted.
std::string WgslPrinter::shift_count(Value count) const {
  const Type type = type_of(count);
  if (type.element == DType::u32) return use(count);
  if (constants_[count]) return literal(DType::u32, *constants_[count]);
  return fmt::format("bitcast<{}>({})", wgsl_type({DType::u32, type.lanes}), use(count));
}

std::string WgslPrinter::expression(const Inst& inst) {
  const bool twice =
      inst.op == Op::min || inst.op == Op::max || (inst.op == Op::mul_high && inst.type.lanes > 1);
  if (twice)
    for (Value arg : inst.args)
      if (!constants_[arg]) atom(arg);
  const std::vector<std::string> args = arguments(inst);
  const std::string type = wgsl_type(inst.type);
  const DType of = inst.args.empty() ? inst.type.element : type_of(inst.args[0]).element;
  if (inst.op == Op::bit_xor && of == DType::b1) return fmt::format("({} != {})", args[0], args[1]);
  if (const char* sign = infix(inst.op)) return fmt::format("({} {} {})", args[0], sign, args[1]);
  if (const char* name = function_name(inst.op))
    return fmt::format("{}({})", name, fmt::join(args, ", "));
  switch (inst.op) {
    case Op::fma:
      return fused(inst, args);
    case Op::param:
      return "params." + param_names_[inst.object];
    case Op::group_id:
      return fmt::format("prism_group[{}]", inst.object);
    case Op::group_count:
      return fmt::format("prism_groups[{}]", inst.object);
    case Op::local_id:
      return "prism_local";
    case Op::subgroup_id:
      return fmt::format("(prism_local / {}u)", kernel_.subgroup_size);
    case Op::subgroup_lane:
      return "prism_lane";
    case Op::read:
      return variable_names_[inst.object];
    case Op::neg:
      return is_unsigned_int(of) ? fmt::format("({}(0u) - {})", type, args[0])
                                 : fmt::format("(-{})", args[0]);
    case Op::bit_not:
      return fmt::format("({}{})", of == DType::b1 ? "!" : "~", args[0]);
    // WGSL's own min and max leave open what a NaN gives.
    case Op::min:
      return is_float(of) ? fmt::format("select({0}, {1}, {1} < {0})", args[0], args[1])
                          : fmt::format("min({}, {})", args[0], args[1]);
    case Op::max:
      return is_float(of) ? fmt::format("select({0}, {1}, {0} < {1})", args[0], args[1])
                          : fmt::format("max({}, {})", args[0], args[1]);
    case Op::mul_high:
      return per_lane(inst, is_signed_int(of) ? "prism_mul_high_i32" : "prism_mul_high_u32");
    case Op::shl_plain:
      return fmt::format("({} << {})", args[0], shift_count(inst.args[1]));
    case Op::shr_plain:
      return fmt::format("({} >> {})", args[0], shift_count(inst.args[1]));
    case Op::select:
      return fmt::format("select({}, {}, {})", args[2], args[1], args[0]);
    case Op::cast:
    case Op::cast_plain:
      return fmt::format("{}({})", type, args[0]);
    case Op::bitcast:
      // Through f32, which holds every f16: not every compiler casts between a word and two halves.
      if (of == DType::f16 && inst.type == Type{DType::u32, 1})
        return fmt::format("pack2x16float(vec2<f32>({}))", args[0]);
      if (of == DType::u32 && inst.type == Type{DType::f16, 2})
        return fmt::format("vec2<f16>(unpack2x16float({}))", args[0]);
      return fmt::format("bitcast<{}>({})", type, args[0]);
    case Op::pack_8:
      return fmt::format("prism_pack_8({})", of == DType::u32
                                                 ? args[0]
                                                 : fmt::format("bitcast<vec4<u32>>({})", args[0]));
    case Op::dot4_i8:
      return fmt::format("(dot4I8Packed({}, {}) + {})", args[0], args[1], args[2]);
    case Op::dot4_u8:
      return fmt::format("(dot4U8Packed({}, {}) + {})", args[0], args[1], args[2]);
    case Op::make_vector:
      return fmt::format("{}({})", type, fmt::join(args, ", "));
    case Op::extract:
      return fmt::format("{}.{}", args[0], "xyzw"[inst.object]);
    case Op::subgroup_reduce:
    case Op::subgroup_shuffle:
    case Op::subgroup_shuffle_xor:
      return subgroup(inst, args);
    default:
      cannot(ir::op_name(inst.op));
  }
}

// Drivers may take n*a + (n*b + x) for n*(a+b) + x, which undoes a reduction by a constant in
// several parts; WGSL has no word against it, so the inner sum passes through bits they cannot see
// through.
std::string WgslPrinter::fused(const Inst& inst, std::vector<std::string> args) const {
  const Inst* inner = makers_[inst.args[2]];
  const auto shares = [&](Value value) {
    return value == inner->args[0] || value == inner->args[1];
  };
  if (inner && inner->op == Op::fma && inst.type.element == DType::f32 &&
      (shares(inst.args[0]) || shares(inst.args[1]))) {
    const std::string words = wgsl_type({DType::u32, inst.type.lanes});
    args[2] = fmt::format("bitcast<{0}>(bitcast<{1}>({2}) ^ {1}(prism_zero()))",
                          wgsl_type(inst.type), words, args[2]);
  }
  return fmt::format("fma({})", fmt::join(args, ", "));
}

std::string WgslPrinter::per_lane(const Inst& inst, const char* function) {
  if (inst.type.lanes == 1)
    return fmt::format("{}({})", function, fmt::join(arguments(inst), ", "));
  std::string lanes;
  for (uint32_t lane = 0; lane < inst.type.lanes; ++lane) {
    std::string parts;
    for (Value arg : inst.args)
      parts += fmt::format("{}{}[{}]", parts.empty() ? "" : ", ", use(arg), lane);
    lanes += fmt::format("{}{}({})", lane ? ", " : "", function, parts);
  }
  return fmt::format("{}({})", wgsl_type(inst.type), lanes);
}

std::string WgslPrinter::subgroup(const Inst& inst, const std::vector<std::string>& args) const {
  if (inst.op == Op::subgroup_shuffle)
    return fmt::format("subgroupShuffle({}, {})", args[0], args[1]);
  if (inst.op == Op::subgroup_shuffle_xor)
    return fmt::format("subgroupShuffleXor({}, {}u)", args[0], inst.bits);
  constexpr std::array<const char*, 6> kNames = {"Add", "Min", "Max", "And", "Or", "Xor"};
  return fmt::format("subgroup{}({})", kNames.at(inst.bits), args[0]);
}

// WGSL scans sums only, so every scan goes by shuffles: each round adds what stands twice as far
// below.
void WgslPrinter::subgroup_scan(const Inst& inst) {
  const auto op = static_cast<ir::ReduceOp>(inst.bits);
  const std::string total = new_name("scan");
  line(fmt::format("var {}: {} = {};", total, wgsl_type(inst.type), use(inst.args[0])));
  const auto combined = [&](const std::string& a, const std::string& b) {
    switch (op) {
      case ir::ReduceOp::add:
        return fmt::format("{} + {}", a, b);
      case ir::ReduceOp::min:
        return fmt::format("min({}, {})", a, b);
      case ir::ReduceOp::max:
        return fmt::format("max({}, {})", a, b);
      case ir::ReduceOp::bit_and:
        return fmt::format("{} & {}", a, b);
      case ir::ReduceOp::bit_or:
        return fmt::format("{} | {}", a, b);
      case ir::ReduceOp::bit_xor:
        return fmt::format("{} ^ {}", a, b);
    }
    cannot("this scan");
  };
  for (uint32_t distance = 1; distance < kernel_.subgroup_size; distance *= 2) {
    const std::string below = new_name("below");
    line(fmt::format("let {} = subgroupShuffle({}, max(prism_lane, {}u) - {}u);", below, total,
                     distance, distance));
    line(fmt::format("if (prism_lane >= {}u) {{ {} = {}; }}", distance, total,
                     combined(below, total)));
  }
  texts_[inst.result] = new_name("v");
  if (inst.object == 0) return line(fmt::format("let {} = {};", texts_[inst.result], total));
  const std::string below = new_name("below");
  line(fmt::format("let {} = subgroupShuffle({}, max(prism_lane, 1u) - 1u);", below, total));
  line(fmt::format("let {} = select({}, {}, prism_lane == 0u);", texts_[inst.result], below,
                   identity(op, inst.type)));
}

std::string WgslPrinter::identity(ir::ReduceOp op, Type type) const {
  const DType element = type.element;
  const bool low = op == ir::ReduceOp::max;
  uint64_t bits = 0;
  if (op == ir::ReduceOp::bit_and) bits = 0xffffffffu;
  if (op == ir::ReduceOp::min || low) {
    if (element == DType::f32)
      bits = low ? 0xff800000u : 0x7f800000u;
    else if (element == DType::i32)
      bits = low ? 0x80000000u : 0x7fffffffu;
    else
      bits = low ? 0 : 0xffffffffu;
  }
  const std::string one = literal(element, bits);
  return type.lanes > 1 ? fmt::format("{}({})", wgsl_type(type), one) : one;
}

}  // namespace prism
