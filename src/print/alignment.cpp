// Alignment by data-flow analysis: starts from the best case and lowers it until nothing changes.
#include "print/alignment.h"

#include <algorithm>

namespace prism {

using ir::Block;
using ir::Inst;
using ir::Op;

namespace {

constexpr uint32_t kMost = 256;

class Multiples {
 public:
  explicit Multiples(const ir::Kernel& kernel)
      : values_(kernel.values.size(), kMost),
        variables_(kernel.variables.size(), kMost),
        constants_(kernel.values.size(), kNotConstant) {
    do {
      changed_ = false;
      visit(kernel.body);
    } while (changed_);
  }
  std::vector<uint32_t> take() { return std::move(values_); }

 private:
  static constexpr uint64_t kNotConstant = ~uint64_t{0};

  void lower(uint32_t& known, uint32_t to) {
    if (to >= known) return;
    known = to;
    changed_ = true;
  }

  static uint32_t power_in(uint64_t constant) {
    if (constant == 0) return kMost;
    return static_cast<uint32_t>(std::min<uint64_t>(kMost, constant & (~constant + 1)));
  }

  uint32_t result(const Inst& inst) const {
    const auto of = [&](size_t arg) { return values_[inst.args[arg]]; };
    switch (inst.op) {
      case Op::constant:
        return power_in(inst.bits);
      case Op::add:
      case Op::sub:
      case Op::bit_or:
      case Op::bit_xor:
        return std::min(of(0), of(1));
      case Op::mul:
        return static_cast<uint32_t>(std::min<uint64_t>(kMost, uint64_t{of(0)} * of(1)));
      case Op::bit_and:
        return std::max(of(0), of(1));
      case Op::shl_plain: {
        const uint64_t count = constants_[inst.args[1]];
        return count == kNotConstant ? of(0)
                                     : static_cast<uint32_t>(std::min<uint64_t>(
                                           kMost, uint64_t{of(0)} << std::min<uint64_t>(count, 8)));
      }
      case Op::shr_plain: {
        const uint64_t count = constants_[inst.args[1]];
        return count == kNotConstant ? 1
                                     : std::max<uint32_t>(1, of(0) >> std::min<uint64_t>(count, 9));
      }
      case Op::div_plain: {
        const uint64_t by = constants_[inst.args[1]];
        const bool power = by != kNotConstant && by != 0 && (by & (by - 1)) == 0;
        return power ? std::max<uint32_t>(
                           1, static_cast<uint32_t>(of(0) / std::min<uint64_t>(by, 2 * kMost)))
                     : 1;
      }
      case Op::select:
        return std::min(of(1), of(2));
      case Op::cast:
      case Op::bitcast:
        return of(0);
      case Op::read:
        return variables_[inst.object];
      default:
        return 1;
    }
  }

  void visit(const Block& block) {
    for (const Inst& inst : block.body) {
      if (inst.op == Op::constant) constants_[inst.result] = inst.bits;
      if (inst.result != ir::kNone) lower(values_[inst.result], is_index(inst) ? result(inst) : 1);
      if (inst.op == Op::declare || inst.op == Op::assign)
        lower(variables_[inst.object], values_[inst.args[0]]);
      if (inst.op == Op::raw && inst.object != ir::kNone) lower(variables_[inst.object], 1);
      if (inst.op == Op::for_)
        lower(values_[inst.blocks[0].params[0]],
              std::min(values_[inst.args[0]], values_[inst.args[2]]));
      else
        for (const Block& inner : inst.blocks)
          for (ir::Value param : inner.params) lower(values_[param], 1);
      for (const Block& inner : inst.blocks) visit(inner);
    }
  }

  static bool is_index(const Inst& inst) {
    return inst.type.lanes == 1 &&
           (inst.type.element == DType::u32 || inst.type.element == DType::i32);
  }

  std::vector<uint32_t> values_, variables_;
  std::vector<uint64_t> constants_;
  bool changed_ = false;
};

}  // namespace

std::vector<uint32_t> known_multiples(const ir::Kernel& kernel) { return Multiples(kernel).take(); }

}  // namespace prism
