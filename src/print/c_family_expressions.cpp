// Expressions of the C family: literals, scalar arithmetic, and vectors lane by lane.
#include <bit>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "print/c_family.h"

namespace prism {

using ir::Op;
using ir::ReduceOp;

namespace {

constexpr const char* kLanes[] = {".x", ".y", ".z", ".w"};

// Text that denotes exactly this value even if a compiler parses decimals inexactly: a short
// decimal only if it is exact, hexadecimal otherwise.
std::string float_text(double value) {
  std::string text = fmt::format("{}", value);
  const bool exact = text.size() <= 9 && text.find('e') == std::string::npos &&
                     std::fabs(value) < 1e6 && value * 1024 == std::floor(value * 1024);
  if (!exact) return fmt::format("{:a}", value);
  if (text.find('.') == std::string::npos) text += ".0";
  return text;
}

// Whether the printed form of this operation repeats an argument.
bool repeats(Op op) { return op == Op::min || op == Op::max || op == Op::abs; }

// The identity of a reduction.
uint64_t identity_bits(ReduceOp op, DType type) {
  const bool wide = dtype_bytes(type) == 8;
  switch (op) {
    case ReduceOp::bit_and:
      return ~uint64_t{0};
    case ReduceOp::min:
    case ReduceOp::max: {
      const bool lowest = op == ReduceOp::max;
      switch (type) {
        case DType::f32:
          return lowest ? 0xff800000u : 0x7f800000u;
        case DType::f64:
          return lowest ? 0xfff0000000000000u : 0x7ff0000000000000u;
        case DType::f16:
          return lowest ? 0xfc00u : 0x7c00u;
        case DType::i32:
          return lowest ? 0x80000000u : 0x7fffffffu;
        case DType::i64:
          return lowest ? uint64_t{1} << 63 : ~(uint64_t{1} << 63);
        default:
          return lowest ? 0 : wide ? ~uint64_t{0} : 0xffffffffu;
      }
    }
    default:
      return 0;
  }
}

}  // namespace

const char* operator_text(Op op) {
  switch (op) {
    case Op::add:
      return "+";
    case Op::sub:
      return "-";
    case Op::mul:
      return "*";
    case Op::div:
    case Op::div_plain:
      return "/";
    case Op::bit_and:
      return "&";
    case Op::bit_or:
      return "|";
    case Op::bit_xor:
      return "^";
    case Op::shl_plain:
      return "<<";
    case Op::shr_plain:
      return ">>";
    case Op::eq:
      return "==";
    case Op::ne:
      return "!=";
    case Op::lt:
      return "<";
    case Op::le:
      return "<=";
    case Op::gt:
      return ">";
    case Op::ge:
      return ">=";
    default:
      return nullptr;
  }
}

const char* math_name(Op op) {
  switch (op) {
    case Op::floor:
      return "floor";
    case Op::ceil:
      return "ceil";
    case Op::trunc:
      return "trunc";
    case Op::round_even:
      return "rint";
    case Op::sqrt:
      return "sqrt";
    case Op::rsqrt:
      return "rsqrt";
    case Op::exp:
      return "exp";
    case Op::exp2:
      return "exp2";
    case Op::log:
      return "log";
    case Op::log2:
      return "log2";
    case Op::sin:
      return "sin";
    case Op::cos:
      return "cos";
    case Op::tanh:
      return "tanh";
    case Op::fma:
      return "fma";
    default:
      return nullptr;
  }
}

bool is_subgroup(Op op) {
  return op == Op::subgroup_reduce || op == Op::subgroup_scan || op == Op::subgroup_shuffle ||
         op == Op::subgroup_shuffle_xor;
}

std::string CFamily::value_type(Type type) const {
  return type.lanes == 1 ? table_.values[static_cast<size_t>(type.element)] : vector_type(type);
}

std::string CFamily::vector_type(Type type) const { return "prism_" + ir::type_name(type); }

std::string CFamily::make_vector(Type type, const std::vector<std::string>& lanes) const {
  return fmt::format("{}{{{}}}", vector_type(type), fmt::join(lanes, ", "));
}

std::string CFamily::unsigned_type(DType type) const {
  switch (type) {
    case DType::i64:
    case DType::u64:
      return table_.values[static_cast<size_t>(DType::u64)];
    default:
      return table_.values[static_cast<size_t>(DType::u32)];
  }
}

std::string CFamily::literal(DType type, uint64_t bits) {
  switch (type) {
    case DType::b1:
      return bits & 1 ? "true" : "false";
    case DType::i32: {
      const auto value = static_cast<int32_t>(bits);
      if (value == INT32_MIN) return "(-2147483647 - 1)";
      return value < 0 ? fmt::format("({})", value) : fmt::format("{}", value);
    }
    case DType::u32:
      return fmt::format("{}u", static_cast<uint32_t>(bits));
    case DType::i64: {
      const auto value = static_cast<int64_t>(bits);
      if (value == INT64_MIN)
        return fmt::format("(({})(-9223372036854775807 - 1))",
                           table_.values[static_cast<size_t>(type)]);
      return fmt::format("(({}){})", table_.values[static_cast<size_t>(type)], value);
    }
    case DType::u64:
      return fmt::format("(({}){}u)", table_.values[static_cast<size_t>(type)], bits);
    case DType::f64: {
      const auto value = std::bit_cast<double>(bits);
      if (!std::isfinite(value))
        return bitcast({DType::f64, 1}, {DType::u64, 1}, literal(DType::u64, bits));
      return std::signbit(value) ? "(" + float_text(value) + ")" : float_text(value);
    }
    case DType::f16:
      return fmt::format(
          "(({}){})", table_.values[static_cast<size_t>(type)],
          literal(DType::f32, std::bit_cast<uint32_t>(f32_from_f16(static_cast<uint16_t>(bits)))));
    default: {
      const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (!std::isfinite(value))
        return bitcast({DType::f32, 1}, {DType::u32, 1},
                       fmt::format("0x{:08x}u", static_cast<uint32_t>(bits)));
      const std::string text = float_text(static_cast<double>(value)) + "f";
      return std::signbit(value) ? "(" + text + ")" : text;
    }
  }
}

std::string CFamily::math(const char* name, DType type, const std::string& args) const {
  const char* format = type == DType::f64   ? table_.math_f64
                       : type == DType::f16 ? table_.math_f16
                                            : table_.math_f32;
  return fmt::format(fmt::runtime(format), name) + "(" + args + ")";
}

std::string CFamily::operation(const Inst& inst, DType result, DType argument,
                               const std::vector<std::string>& args) {
  const std::string type = table_.values[static_cast<size_t>(result)];
  const bool wraps =
      is_signed_int(argument);  // signed overflow is undefined in C: compute unsigned
  const std::string unsigned_name = unsigned_type(argument);
  switch (inst.op) {
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::shl_plain:
      if (!wraps) break;
      if (inst.op == Op::shl_plain)
        return fmt::format("({})(({}){} << {})", type, unsigned_name, args[0], args[1]);
      return fmt::format("({})(({}){} {} ({}){})", type, unsigned_name, args[0],
                         operator_text(inst.op), unsigned_name, args[1]);
    case Op::neg:
      if (is_float(argument)) return (table_.group_count ? "prism_negate(" : "(-") + args[0] + ")";
      if (wraps)
        return fmt::format("({})(({})0 - ({}){})", type, unsigned_name, unsigned_name, args[0]);
      return fmt::format("(({})0 - {})", unsigned_name, args[0]);
    case Op::abs:
      if (is_float(argument)) return math("fabs", argument, bare(args[0]));
      if (!wraps) return args[0];
      return fmt::format("({0} < 0 ? ({1})(({2})0 - ({2}){0}) : {0})", args[0], type,
                         unsigned_name);
    case Op::min:
      return fmt::format("({1} < {0} ? {1} : {0})", args[0], args[1]);
    case Op::max:
      return fmt::format("({0} < {1} ? {1} : {0})", args[0], args[1]);
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      if (argument != DType::b1) break;
      return fmt::format("({} {} {})", args[0],
                         inst.op == Op::bit_and  ? "&&"
                         : inst.op == Op::bit_or ? "||"
                                                 : "!=",
                         args[1]);
    case Op::bit_not:
      if (argument == DType::b1) return "(!" + args[0] + ")";
      return (table_.group_count ? "prism_complement(" : "(~") + args[0] + ")";
    case Op::select:
      return fmt::format("({} ? {} : {})", args[0], args[1], args[2]);
    case Op::cast:
    case Op::cast_plain:
      if (result == argument) return args[0];
      if (result == DType::b1) return fmt::format("({} != {})", args[0], literal(argument, 0));
      if (argument == DType::b1) return fmt::format("({0} ? ({1})1 : ({1})0)", args[0], type);
      return fmt::format("({}){}", type, args[0]);
    case Op::mul_high:
      return fmt::format("prism_mul_high_{}({}, {})", dtype_name(argument), bare(args[0]),
                         bare(args[1]));
    case Op::extract_bits:
      return fmt::format("prism_extract_bits_{}({}, {}, {})", dtype_name(argument), bare(args[0]),
                         bare(args[1]), bare(args[2]));
    case Op::insert_bits:
      return fmt::format("prism_insert_bits({}, {}, {}, {})", bare(args[0]), bare(args[1]),
                         bare(args[2]), bare(args[3]));
    case Op::popcount:
      return "prism_popcount(" + bare(args[0]) + ")";
    case Op::count_leading_zeros:
      return "prism_count_leading_zeros(" + bare(args[0]) + ")";
    case Op::dot4_i8:
    case Op::dot4_u8:
      return fmt::format("prism_{}({}, {}, {})", ir::op_name(inst.op), bare(args[0]), bare(args[1]),
                         bare(args[2]));
    default:
      break;
  }
  if (const char* symbol = operator_text(inst.op))
    return fmt::format("({} {} {})", args[0], symbol, args[1]);
  if (const char* name = math_name(inst.op)) {
    std::string list = bare(args[0]);
    for (size_t i = 1; i < args.size(); ++i) list += ", " + bare(args[i]);
    return math(name, argument, list);
  }
  cannot(inst);
}

std::string CFamily::lane(Value value, uint32_t index) {
  const std::string text = atom(value);
  return type_of(value).lanes == 1 ? text : text + kLanes[index];
}

std::string CFamily::scalar(const Inst& inst) {
  std::vector<std::string> args;
  for (Value arg : inst.args) args.push_back(repeats(inst.op) ? atom(arg) : use(arg));
  // The operand type of a select is the type of its alternatives.
  const Value typed = inst.op == Op::select ? inst.args[1] : inst.args[0];
  return operation(inst, inst.type.element, type_of(typed).element, args);
}

void CFamily::expression(const Inst& inst) {
  if (is_subgroup(inst.op)) {
    std::vector<std::string> lanes;
    for (uint32_t i = 0; i < inst.type.lanes; ++i) {
      std::vector<std::string> args;
      for (Value arg : inst.args)
        args.push_back(bare(inst.type.lanes == 1 ? use(arg) : lane(arg, i)));
      lanes.push_back(subgroup(inst, args));
      if (inst.type.lanes == 1) break;
      const std::string name = names_.unique("t");
      line(constant({inst.type.element, 1}, name, lanes.back()));
      lanes.back() = name;
    }
    // Every lane takes part, so it must not be inlined into a conditionally evaluated expression.
    define(inst.result, inst.type.lanes == 1 ? lanes[0] : make_vector(inst.type, lanes), "t",
           false);
    return;
  }
  const std::string unsigned_name = unsigned_type(DType::u32);
  switch (inst.op) {
    case Op::bitcast: {
      const std::string text = use(inst.args[0]);
      define(inst.result,
             inst.type == type_of(inst.args[0])
                 ? text
                 : bitcast(inst.type, type_of(inst.args[0]), bare(text)),
             "bits");
      return;
    }
    case Op::extract: {
      const std::string text = atom(inst.args[0]);
      define(inst.result, text + kLanes[inst.object], "t");
      return;
    }
    case Op::make_vector: {
      std::vector<std::string> lanes;
      for (Value arg : inst.args) lanes.push_back(bare(use(arg)));
      define(inst.result, make_vector(inst.type, lanes), "v", false);
      return;
    }
    case Op::pack_f16: {
      const std::string v = atom(inst.args[0]);
      define(inst.result, fmt::format("prism_pack_f16({0}.x, {0}.y)", v), "packed");
      return;
    }
    case Op::unpack_f16: {
      const std::string v = atom(inst.args[0]);
      const std::string half_type = table_.stored[static_cast<size_t>(DType::u16)];
      define(inst.result,
             make_vector(inst.type,
                         {fmt::format("prism_f32_from_f16(({})({} & 65535u))", half_type, v),
                          fmt::format("prism_f32_from_f16(({})({} >> 16))", half_type, v)}),
             "v", false);
      return;
    }
    case Op::pack_8: {
      const std::string v = atom(inst.args[0]);
      define(
          inst.result,
          fmt::format(
              "((({0}){1}.x & 255u) | ((({0}){1}.y & 255u) << 8) | ((({0}){1}.z & 255u) << 16) | "
              "(({0}){1}.w << 24))",
              unsigned_name, v),
          "packed");
      return;
    }
    case Op::unpack_i8:
    case Op::unpack_u8: {
      const std::string v = atom(inst.args[0]);
      const std::string type = table_.values[static_cast<size_t>(DType::i32)];
      std::vector<std::string> lanes;
      for (int i = 0; i < 4; ++i) {
        if (inst.op == Op::unpack_u8)
          lanes.push_back(i == 0 ? v + " & 255u" : fmt::format("({} >> {}) & 255u", v, 8 * i));
        else if (i == 3)
          lanes.push_back(fmt::format("({}){} >> 24", type, v));
        else
          lanes.push_back(fmt::format("({})({} << {}) >> 24", type, v, 24 - 8 * i));
      }
      define(inst.result, make_vector(inst.type, lanes), "v", false);
      return;
    }
    default:
      break;
  }
  if (inst.type.lanes == 1)
    define(inst.result, scalar(inst), "t");
  else
    vector_expression(inst);
}

void CFamily::vector_expression(const Inst& inst) {
  const Value typed = inst.op == Op::select ? inst.args[1] : inst.args[0];
  std::vector<std::string> lanes;
  for (uint32_t i = 0; i < inst.type.lanes; ++i) {
    std::vector<std::string> args;
    for (Value arg : inst.args) args.push_back(lane(arg, i));
    lanes.push_back(bare(operation(inst, inst.type.element, type_of(typed).element, args)));
  }
  define(inst.result, make_vector(inst.type, lanes), "v", false);
}

std::string CFamily::atomic(const Inst& inst, const std::string& pointer,
                            const std::vector<std::string>& args) {
  std::string text = fmt::format("prism_atomic_{}({}",
                                 ir::atomic_op_name(static_cast<ir::AtomicOp>(inst.bits)), pointer);
  for (const std::string& arg : args) text += ", " + arg;
  return text + ")";
}

std::string CFamily::subgroup(const Inst& inst, const std::vector<std::string>& args) {
  const DType type = inst.type.element;
  const auto reduce = static_cast<ReduceOp>(inst.bits);
  const char* op = ir::reduce_op_name(reduce);
  switch (inst.op) {
    case Op::subgroup_reduce:
      return fmt::format("{}({})", subgroup_function(fmt::format("prism_reduce_{}", op), type),
                         args[0]);
    case Op::subgroup_scan:
      if (inst.object == 1)
        return fmt::format("{}({}, {})",
                           subgroup_function(fmt::format("prism_exclusive_scan_{}", op), type),
                           args[0], literal(type, identity_bits(reduce, type)));
      return fmt::format(
          "{}({})", subgroup_function(fmt::format("prism_inclusive_scan_{}", op), type), args[0]);
    case Op::subgroup_shuffle:
      return fmt::format("{}({}, {})", subgroup_function("prism_shuffle", type), args[0], args[1]);
    default:
      return fmt::format("{}({}, {}u)", subgroup_function("prism_shuffle_xor", type), args[0],
                         inst.bits);
  }
}

std::string CFamily::subgroup_function(const std::string& name, DType) const {
  return fmt::format("{}<{}>", name, kernel_.subgroup_size);
}

}  // namespace prism
