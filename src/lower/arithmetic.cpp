// Lowers division, shifts and conversions to plain operations with their defined edge cases, and
// removes dead code.
#include <optional>
#include <unordered_map>

#include "lower/passes.h"
#include "lower/rewriter.h"

namespace prism::lower_detail {
namespace {

using namespace dsl;
using ir::Inst;
using ir::Op;

Value plain_op(Op op, Type type, std::vector<ir::Value> args) {
  return Value(Builder::current().append(op, type, std::move(args), {}));
}

uint32_t bit_width(DType type) { return static_cast<uint32_t>(dtype_bytes(type) * 8); }

Value typed(Type type, uint64_t bits) {
  return splat(constant_bits(type.element, bits), type.lanes);
}
Value zero_of(Type type) { return typed(type, 0); }
Value lowest_int(Type type) {
  return typed(type, bit_width(type.element) == 64 ? 0x8000000000000000ull : 0x80000000ull);
}
Value highest_int(Type type) {
  const bool is_signed = is_signed_int(type.element);
  if (bit_width(type.element) == 64) return typed(type, is_signed ? 0x7fffffffffffffffull : ~0ull);
  return typed(type, is_signed ? 0x7fffffffull : 0xffffffffull);
}

class LowerArithmetic : public Rewriter {
  void prepare(ir::Kernel&) override {
    ir::walk(source().body, [&](const Inst& inst) {
      if (inst.op == Op::constant) known_[inst.result] = inst.bits;
      if (inst.op != Op::make_vector) return;
      const auto first = known(inst.args[0]);
      bool same = first.has_value();
      for (ir::Value v : inst.args) same &= known(v) == first;
      if (same) known_[inst.result] = *first;
    });
  }

  std::optional<uint64_t> known(ir::Value value) const {
    const auto found = known_.find(value);
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }

  bool rewrite(const Inst& inst) override {
    switch (inst.op) {
      case Op::div_trunc:
        bind(inst.result, quotient(inst));
        return true;
      case Op::rem_trunc:
        bind(inst.result, arg(inst, 0) - quotient(inst) * arg(inst, 1));
        return true;
      case Op::div_floor:
      case Op::mod_floor:
        bind(inst.result, floored(inst));
        return true;
      case Op::shl:
      case Op::shr:
        bind(inst.result, shifted(inst));
        return true;
      case Op::cast:
        return converted(inst);
      default:
        return false;
    }
  }

  Value quotient(const Inst& inst) {
    const Value a = arg(inst, 0), b = arg(inst, 1);
    const Type type = inst.type;
    const bool is_signed = is_signed_int(type.element);
    const auto divisor = known(inst.args[1]);
    const uint64_t minus_one = bit_width(type.element) == 64 ? ~0ull : 0xffffffffull;
    if (divisor && *divisor != 0 && !(is_signed && *divisor == minus_one))
      return plain_op(Op::div_plain, type, {a.id(), b.id()});
    const Value by_zero = b == zero_of(type);
    const Value unsafe =
        is_signed ? by_zero | ((a == lowest_int(type)) & (b == typed(type, minus_one))) : by_zero;
    const Value safe = select(unsafe, typed(type, 1), b);
    return select(by_zero, zero_of(type), plain_op(Op::div_plain, type, {a.id(), safe.id()}));
  }

  Value floored(const Inst& inst) {
    const Value a = arg(inst, 0), b = arg(inst, 1);
    const Value q = quotient(inst);
    const Value r = a - q * b;
    if (!is_signed_int(inst.type.element)) return inst.op == Op::div_floor ? q : r;
    const Value zero = zero_of(inst.type);
    const Value adjust = (r != zero) & ((r ^ b) < zero) & (b != zero);
    return inst.op == Op::div_floor ? select(adjust, q - typed(inst.type, 1), q)
                                    : select(adjust, r + b, r);
  }

  Value shifted(const Inst& inst) {
    const uint32_t width = bit_width(inst.type.element);
    const auto count = known(inst.args[1]);
    const Value masked =
        count && *count < width ? arg(inst, 1) : arg(inst, 1) & typed(inst.type, width - 1);
    return plain_op(inst.op == Op::shl ? Op::shl_plain : Op::shr_plain, inst.type,
                    {arg(inst, 0).id(), masked.id()});
  }

  bool converted(const Inst& inst) {
    const Value x = arg(inst, 0);
    const Type from = x.type(), to = inst.type;
    if (to.element == b1) {
      bind(inst.result, x != zero_of(from));
    } else if (from.element == b1) {
      const Value one =
          is_float(to.element) ? splat(constant(to.element, 1.0), to.lanes) : typed(to, 1);
      bind(inst.result, select(x, one, zero_of(to)));
    } else if (is_float(from.element) && is_int(to.element)) {
      bind(inst.result, saturated(from.element == f16 ? cast(f32, x) : x, to));
    } else {
      return false;
    }
    return true;
  }

  // NaN compares false with everything, so it takes the path of zero.
  Value saturated(Value x, Type to) {
    const Type from = x.type();
    const double limit = (bit_width(to.element) == 64 ? 0x1p32 : 1.0) *
                         (is_signed_int(to.element) ? 0x1p31 : 0x1p32);
    const Value top = splat(constant(from.element, limit), from.lanes);
    const Value bottom =
        splat(constant(from.element, is_signed_int(to.element) ? -limit : 0.0), from.lanes);
    const Value safe = select((x >= bottom) & (x < top), x, zero_of(from));
    const Value plain = plain_op(Op::cast_plain, to, {safe.id()});
    const Value below = is_signed_int(to.element) ? lowest_int(to) : zero_of(to);
    return select(x >= top, highest_int(to), select(x < bottom, below, plain));
  }

  std::unordered_map<ir::Value, uint64_t> known_;
};

bool has_effect(const Inst& inst) {
  switch (inst.op) {
    case Op::atomic:
    case Op::subgroup_reduce:
    case Op::subgroup_scan:
    case Op::subgroup_shuffle:
    case Op::subgroup_shuffle_xor:
    case Op::group_reduce:
      return true;  // all lanes must take part: never removed on one path only
    default:
      return inst.result == ir::kNone;
  }
}

void drop_dead(ir::Block& block, std::vector<bool>& used, bool keep_waits) {
  std::vector<Inst> kept;
  for (size_t i = block.body.size(); i-- > 0;) {
    Inst& inst = block.body[i];
    if (!keep_waits && (inst.op == Op::wait_previous || inst.op == Op::launch_next)) continue;
    if (!has_effect(inst) && !used[inst.result]) continue;
    for (size_t b = inst.blocks.size(); b-- > 0;) drop_dead(inst.blocks[b], used, keep_waits);
    if (inst.op == Op::if_ && inst.blocks[0].body.empty() && inst.blocks[1].body.empty()) continue;
    for (ir::Value v : inst.args) used[v] = true;
    kept.push_back(std::move(inst));
  }
  block.body.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

}  // namespace

ir::Kernel lower_arithmetic(const ir::Kernel& kernel) { return LowerArithmetic().run(kernel); }

ir::Kernel clean_up(const ir::Kernel& kernel, const ir::Capabilities& capabilities) {
  ir::Kernel clean = kernel;
  std::vector<bool> used(kernel.values.size(), false);
  drop_dead(clean.body, used, capabilities.dependent_launch);
  return clean;
}

}  // namespace prism::lower_detail
