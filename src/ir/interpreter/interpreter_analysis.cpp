// Uniformity by fixed-point iteration, and slot sharing by live ranges in program order.
#include "ir/interpreter/interpreter_analysis.h"

#include <algorithm>

namespace prism::ir::vm {
namespace {

bool is_loop(Op op) { return op == Op::for_ || op == Op::while_; }

// Optimistic: all variables and loops are uniform until shown otherwise. A mask identifies each
// control flow; a variable stays uniform while it is only assigned under the mask of its
// declaration.
class Uniformity {
 public:
  Uniformity(const Kernel& kernel, Analysis& result) : kernel_(kernel), result_(result) {
    result_.uniform.assign(kernel.values.size(), true);
    result_.uniform_variable.assign(kernel.variables.size(), true);
    result_.contiguous.assign(kernel.values.size(), false);
    declared_under_.assign(kernel.variables.size(), 0);
    do {
      changed_ = false;
      next_mask_ = 1;
      visit(kernel.body, 0);
    } while (changed_);
  }

 private:
  struct Loop {
    const Inst* inst;
    uint32_t mask;
  };

  bool all_uniform(const Inst& inst) const {
    return std::all_of(inst.args.begin(), inst.args.end(),
                       [&](Value v) { return result_.uniform[v]; });
  }
  void set_uniform(Value value, bool uniform) {
    if (value != kNone) result_.uniform[value] = uniform;
  }
  void set_varying(uint32_t variable) {
    changed_ |= result_.uniform_variable[variable];
    result_.uniform_variable[variable] = false;
  }
  void set_varying(const Inst& loop) {
    bool& varying = result_.varying_loop[&loop];
    changed_ |= !varying;
    varying = true;
  }

  void visit(const Block& block, uint32_t mask) {
    for (const Inst& inst : block.body) visit(inst, mask);
  }

  void visit(const Inst& inst, uint32_t mask) {
    switch (inst.op) {
      case Op::local_id:
        set_uniform(inst.result, false);
        result_.contiguous[inst.result] = true;
        break;
      case Op::subgroup_id:
      case Op::subgroup_lane:
      case Op::atomic:
      case Op::subgroup_reduce:
      case Op::subgroup_scan:
      case Op::subgroup_shuffle:
      case Op::subgroup_shuffle_xor:
        set_uniform(inst.result, false);
        break;
      case Op::group_reduce:
        break;
      case Op::add: {
        const bool a = result_.uniform[inst.args[0]], b = result_.uniform[inst.args[1]];
        result_.contiguous[inst.result] =
            (result_.contiguous[inst.args[0]] && b) || (a && result_.contiguous[inst.args[1]]);
        set_uniform(inst.result, a && b);
        break;
      }
      case Op::sub:
        result_.contiguous[inst.result] =
            result_.contiguous[inst.args[0]] && result_.uniform[inst.args[1]];
        set_uniform(inst.result, all_uniform(inst));
        break;
      case Op::load:
        set_uniform(inst.result,
                    kernel_.memories[inst.object].space != Space::local && all_uniform(inst));
        break;
      case Op::read:
        set_uniform(inst.result, result_.uniform_variable[inst.object]);
        break;
      case Op::declare:
        declared_under_[inst.object] = mask;
        [[fallthrough]];
      case Op::assign:
        if (!result_.uniform[inst.args[0]] || declared_under_[inst.object] != mask)
          set_varying(inst.object);
        break;
      case Op::if_: {
        const bool uniform = result_.uniform[inst.args[0]];
        for (const Block& block : inst.blocks) visit(block, uniform ? mask : next_mask_++);
        break;
      }
      case Op::for_:
      case Op::while_:
        visit_loop(inst, mask);
        break;
      case Op::break_:
        if (mask != loops_.back().mask) set_varying(*loops_.back().inst);
        break;
      case Op::fragment_map:
      case Op::fragment_make:
        for (Value param : inst.blocks[0].params) set_uniform(param, false);
        visit(inst.blocks[0], next_mask_++);
        break;
      default:
        if (inst.result != kNone) set_uniform(inst.result, all_uniform(inst));
        for (const Block& block : inst.blocks) visit(block, mask);
        break;
    }
  }

  void visit_loop(const Inst& inst, uint32_t mask) {
    const bool varying = result_.varying_loop[&inst];
    const uint32_t inner = varying ? next_mask_++ : mask;
    loops_.push_back({&inst, inner});
    if (inst.op == Op::for_) {
      const bool start = result_.uniform[inst.args[0]], end = result_.uniform[inst.args[1]];
      const bool step = result_.uniform[inst.args[2]];
      if (!start || !end || !step) set_varying(inst);
      const Value index = inst.blocks[0].params[0];
      set_uniform(index, start && step);
      result_.contiguous[index] = result_.contiguous[inst.args[0]] && step;
    }
    for (const Block& block : inst.blocks) visit(block, inner);
    if (inst.op == Op::while_ && !result_.uniform[inst.blocks[0].body.back().args[0]])
      set_varying(inst);
    loops_.pop_back();
  }

  const Kernel& kernel_;
  Analysis& result_;
  std::vector<uint32_t> declared_under_;
  std::vector<Loop> loops_;
  uint32_t next_mask_ = 1;
  bool changed_ = false;
};

// Operations whose result is an alias of their operands.
bool renames(Op op) { return op == Op::extract || op == Op::make_vector || op == Op::bitcast; }

// Operations that may compute in place, lane by lane and element by element.
bool is_elementwise(Op op) {
  return (op >= Op::add && op <= Op::shr_plain) || (op >= Op::eq && op <= Op::cast_plain) ||
         op == Op::load || op == Op::load_words;
}

// Positions count instructions in program order, doubled, so that the end of a loop comes after its
// last instruction.
class Places {
 public:
  Places(const Kernel& kernel, Analysis& result)
      : kernel_(kernel),
        result_(result),
        defined_(kernel.values.size(), 0),
        last_use_(kernel.values.size(), 0),
        uses_(kernel.values.size(), 0),
        definition_(kernel.values.size(), nullptr),
        writes_(kernel.variables.size()),
        reads_(kernel.variables.size()) {
    number(kernel.body);
    position_ = 0;
    collect(kernel.body);
    // An alias extends the life of its value. Aliases are made after the values they name.
    for (auto it = renaming_.rbegin(); it != renaming_.rend(); ++it)
      for (Value arg : (*it)->args)
        last_use_[arg] = std::max(last_use_[arg], last_use_[(*it)->result]);
    result_.shares_variable.assign(kernel.values.size(), false);
    result_.computed_in.assign(kernel.values.size(), kNone);
    for (uint32_t v = 0; v < kernel.variables.size(); ++v) share(v);
    choose_places(kernel.body);
  }

 private:
  struct Range {
    uint32_t begin, end;
  };

  void number(const Block& block) {
    for (const Inst& inst : block.body) {
      const uint32_t begin = position_++;
      for (const Block& inner : inst.blocks) number(inner);
      if (!inst.blocks.empty()) ends_[&inst] = 2 * (position_ - 1) + 1;
      if (is_loop(inst.op) || inst.op == Op::fragment_map || inst.op == Op::fragment_make)
        loops_.push_back({2 * begin, ends_[&inst]});
    }
  }

  void use(Value value, uint32_t position) {
    uint32_t last = position;
    for (const Range& loop : loops_)
      if (loop.begin <= position && position <= loop.end &&
          !(loop.begin < defined_[value] && defined_[value] <= loop.end))
        last = std::max(last, loop.end);
    last_use_[value] = std::max(last_use_[value], last);
    ++uses_[value];
  }

  void collect(const Block& block) {
    for (const Inst& inst : block.body) {
      const uint32_t position = 2 * position_++;
      // Conditions and bounds are read again while the blocks run.
      for (Value arg : inst.args) use(arg, inst.blocks.empty() ? position : ends_[&inst]);
      if (inst.result != kNone) {
        defined_[inst.result] = position;
        definition_[inst.result] = &inst;
      }
      if (inst.op == Op::read) reads_[inst.object].push_back(inst.result);
      if (inst.op == Op::declare || inst.op == Op::assign) writes_[inst.object].push_back(position);
      if (renames(inst.op)) renaming_.push_back(&inst);
      for (const Block& inner : inst.blocks) {
        for (Value param : inner.params) defined_[param] = position + 1;
        collect(inner);
      }
    }
  }

  bool written_between(uint32_t variable, uint32_t after, uint32_t before) const {
    const std::vector<uint32_t>& writes = writes_[variable];
    const auto next = std::upper_bound(writes.begin(), writes.end(), after);
    return next != writes.end() && *next < before;
  }

  void share(uint32_t variable) {
    const bool scalar = kernel_.variables[variable].type.lanes == 1;
    for (Value value : reads_[variable]) {
      // The assignment that ends a value's life reads it before it writes; element by element it
      // would not.
      const uint32_t end = last_use_[value] + (scalar ? 0 : 1);
      result_.shares_variable[value] = !written_between(variable, defined_[value], end);
    }
  }

  bool read_between(uint32_t variable, uint32_t after, uint32_t before) const {
    for (Value value : reads_[variable]) {
      if (defined_[value] > after && defined_[value] < before) return true;
      if (result_.shares_variable[value] && defined_[value] < after && last_use_[value] > after)
        return true;
    }
    return false;
  }

  void choose_places(const Block& block) {
    for (const Inst& inst : block.body) {
      for (const Block& inner : inst.blocks) choose_places(inner);
      if (inst.op != Op::assign && inst.op != Op::declare) continue;
      const Value value = inst.args[0];
      const Inst* definition = definition_[value];
      if (!definition || uses_[value] != 1 || !is_elementwise(definition->op)) continue;
      if (definition < block.body.data() || definition >= block.body.data() + block.body.size())
        continue;
      const uint32_t from = defined_[value], to = last_use_[value];
      if (!written_between(inst.object, from, to) && !read_between(inst.object, from, to))
        result_.computed_in[value] = inst.object;
    }
  }

  const Kernel& kernel_;
  Analysis& result_;
  uint32_t position_ = 0;
  std::unordered_map<const Inst*, uint32_t> ends_;
  std::vector<Range> loops_;
  std::vector<uint32_t> defined_, last_use_, uses_;
  std::vector<const Inst*> definition_;
  std::vector<std::vector<uint32_t>> writes_;
  std::vector<std::vector<Value>> reads_;
  std::vector<const Inst*> renaming_;
};

}  // namespace

bool breaks_out(const Inst& inst) {
  if (inst.op == Op::break_) return true;
  if (is_loop(inst.op)) return false;
  for (const Block& block : inst.blocks)
    for (const Inst& inner : block.body)
      if (breaks_out(inner)) return true;
  return false;
}

bool& use_shortcuts() {
  static bool use = true;
  return use;
}

Analysis analyse(const Kernel& kernel) {
  Analysis result;
  if (use_shortcuts()) {
    Uniformity{kernel, result};
    Places{kernel, result};
    return result;
  }
  for (std::vector<bool>* none : {&result.uniform, &result.contiguous, &result.shares_variable})
    none->assign(kernel.values.size(), false);
  result.uniform_variable.assign(kernel.variables.size(), false);
  result.computed_in.assign(kernel.values.size(), kNone);
  walk(kernel.body, [&](const Inst& inst) {
    if (is_loop(inst.op)) result.varying_loop[&inst] = true;
  });
  return result;
}

}  // namespace prism::ir::vm
