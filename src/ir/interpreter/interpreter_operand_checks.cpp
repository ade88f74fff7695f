// Range checks of operands in checked mode.
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "ir/interpreter/interpreter_checks.h"

namespace prism::ir::vm {
namespace {

// One lane's operands as wide numbers: integers with their sign, floats unchanged.
struct Operands {
  const Step& step;
  const Frame& frame;
  uint32_t lane;

  DType type(uint32_t arg) const {
    return frame.program->kernel.values[step.inst->args[arg]].element;
  }
  uint64_t bits(uint32_t arg) const {
    const uint32_t place = step.is_uniform(arg) ? 0 : lane;
    return dtype_bytes(type(arg)) == 8 ? frame.at<uint64_t>(step.args[arg])[place]
                                       : frame.at<uint32_t>(step.args[arg])[place];
  }
  int64_t number(uint32_t arg) const {
    return type(arg) == DType::i32 ? static_cast<int32_t>(bits(arg))
                                   : static_cast<int64_t>(bits(arg));
  }
  double real(uint32_t arg) const {
    return type(arg) == DType::f64
               ? std::bit_cast<double>(bits(arg))
               : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits(arg))));
  }
};

double lowest(DType type) {
  switch (type) {
    case DType::i32:
      return -0x1p31;
    case DType::i64:
      return -0x1p63;
    default:
      return 0;
  }
}
double above(DType type) {
  switch (type) {
    case DType::i32:
      return 0x1p31;
    case DType::u32:
      return 0x1p32;
    case DType::i64:
      return 0x1p63;
    default:
      return 0x1p64;
  }
}

std::optional<std::string> mistake(const Operands& o, const Frame& frame) {
  const Inst& inst = *o.step.inst;
  switch (inst.op) {
    case Op::extract_bits:
    case Op::insert_bits: {
      const uint32_t first = inst.op == Op::extract_bits ? 1 : 2;
      const uint64_t offset = o.bits(first), count = o.bits(first + 1);
      if (offset + count <= 32) return std::nullopt;
      return fmt::format("offset {} and count {} go beyond 32 bits", offset, count);
    }
    case Op::subgroup_shuffle:
      if (o.bits(1) < frame.subgroup) return std::nullopt;
      return fmt::format("takes from lane {} of a subgroup of {}", o.bits(1), frame.subgroup);
    case Op::for_:
      if (o.number(2) > 0) return std::nullopt;
      return fmt::format("counts in steps of {}; a step must be above zero", o.number(2));
    case Op::shl_plain:
    case Op::shr_plain: {
      const uint64_t width = dtype_bytes(o.type(0)) * 8;
      if (o.bits(1) < width) return std::nullopt;
      return fmt::format("shifts {} bits by {}", width, o.bits(1));
    }
    case Op::div_plain: {
      const bool overflows = is_signed_int(o.type(0)) && o.number(1) == -1 &&
                             static_cast<double>(o.number(0)) == lowest(o.type(0));
      if (o.bits(1) != 0 && !overflows) return std::nullopt;
      return fmt::format("divides {} by {}", o.number(0), o.number(1));
    }
    case Op::cast_plain: {
      if (!is_float(o.type(0)) || !is_int(inst.type.element)) return std::nullopt;
      const double whole = std::trunc(o.real(0));
      if (whole >= lowest(inst.type.element) && whole < above(inst.type.element))
        return std::nullopt;
      return fmt::format("converts {} to {}", o.real(0), dtype_name(inst.type.element));
    }
    default:
      return std::nullopt;
  }
}

const Step* operand_check(const Step* s, Frame& f) {
  const Active active = active_lanes(*s, f);
  for (uint32_t lane = 0; lane < active.end; ++lane) {
    if (!active.has(lane)) continue;
    if (const auto what = mistake({*s, f, lane}, f))
      fail(f, *s, fmt::format("{} in lane {} {}", op_name(s->inst->op), lane, *what));
  }
  return s + 1;
}

}  // namespace

Run find_operand_check(const Inst& inst) {
  switch (inst.op) {
    case Op::extract_bits:
    case Op::insert_bits:
    case Op::subgroup_shuffle:
    case Op::for_:
    case Op::shl_plain:
    case Op::shr_plain:
    case Op::div_plain:
    case Op::cast_plain:
      return operand_check;
    default:
      return nullptr;
  }
}

}  // namespace prism::ir::vm
