// Checks scopes, uniformity of control flow and the order of waits; throws at the first violation.
#include "ir/verify.h"

#include <algorithm>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::ir {
namespace {

[[noreturn]] void fail(const Kernel& kernel, const Location& where, const std::string& message) {
  throw Error(ErrorCode::kInvalidKernel,
              fmt::format("kernel {} ({}): {}", kernel.name, location_text(where), message));
}

bool needs_whole_group(Op op) {
  switch (op) {
    case Op::barrier:
    case Op::subgroup_reduce:
    case Op::subgroup_scan:
    case Op::subgroup_shuffle:
    case Op::subgroup_shuffle_xor:
    case Op::group_reduce:
    case Op::fragment_fill:
    case Op::fragment_load:
    case Op::fragment_store:
    case Op::fragment_multiply:
    case Op::fragment_map:
    case Op::fragment_row_reduce:
    case Op::fragment_make:
    case Op::fragment_convert:
    case Op::async_commit:
    case Op::async_wait:
      return true;
    default:
      return false;
  }
}

// Finds which values and variables are uniform. Variables start as uniform and are demoted until
// nothing changes, because a loop may feed a varying value to an earlier read.
class Uniformity {
 public:
  explicit Uniformity(const Kernel& kernel)
      : kernel_(kernel),
        values_(kernel.values.size(), true),
        variables_(kernel.variables.size(), true) {
    do {
      changed_ = false;
      visit(kernel.body, true);
    } while (changed_);
  }

  const std::vector<bool>& values() const { return values_; }

  // Throws if a group-wide instruction is in control flow where lanes may diverge.
  void check_flow() {
    checking_ = true;
    visit(kernel_.body, true);
  }

 private:
  bool all_uniform(const std::vector<Value>& args) const {
    return std::all_of(args.begin(), args.end(), [&](Value v) { return values_[v]; });
  }

  void set_varying(Value value) {
    if (value == kNone || !values_[value]) return;
    values_[value] = false;
    changed_ = true;
  }

  void set_variable_varying(uint32_t variable) {
    if (!variables_[variable]) return;
    variables_[variable] = false;
    changed_ = true;
  }

  // A break under a varying condition makes the whole loop divergent.
  bool has_varying_break(const Block& block, bool varying) const {
    for (const Inst& inst : block.body) {
      if (inst.op == Op::break_ && varying) return true;
      if (inst.op == Op::if_) {
        const bool inner = varying || !values_[inst.args[0]];
        for (const Block& b : inst.blocks)
          if (has_varying_break(b, inner)) return true;
      }
      if (inst.op == Op::raw && !inst.blocks.empty() && has_varying_break(inst.blocks[0], varying))
        return true;
    }
    return false;
  }

  void visit(const Block& block, bool uniform_flow) {
    for (const Inst& inst : block.body) visit(inst, uniform_flow);
  }

  void visit(const Inst& inst, bool uniform_flow) {
    if (checking_ && !uniform_flow && needs_whole_group(inst.op))
      fail(kernel_, inst.where,
           fmt::format("{} is in varying control flow: all lanes of the group must arrive "
                       "together; move it out of "
                       "the if_ or loop, or make the condition uniform",
                       op_name(inst.op)));
    switch (inst.op) {
      case Op::constant:
      case Op::param:
      case Op::group_id:
      case Op::group_count:
      case Op::subgroup_size:
      case Op::group_reduce:
        break;
      case Op::local_id:
      case Op::subgroup_id:
      case Op::subgroup_lane:
      case Op::atomic:
      case Op::subgroup_reduce:
      case Op::subgroup_scan:
      case Op::subgroup_shuffle:
      case Op::subgroup_shuffle_xor:
        set_varying(inst.result);
        break;
      case Op::load:
      case Op::load_words: {
        const Memory& memory = kernel_.memories[inst.object];
        const bool read_only = memory.space == Space::buffer && memory.access == Access::read;
        if (!read_only || !all_uniform(inst.args)) set_varying(inst.result);
        break;
      }
      case Op::read:
        if (!variables_[inst.object]) set_varying(inst.result);
        break;
      case Op::declare:
      case Op::assign:
        // A declaration starts a variable's life, so inactive lanes hold no other value of it.
        if (!values_[inst.args[0]] || (inst.op == Op::assign && !uniform_flow))
          set_variable_varying(inst.object);
        break;
      case Op::if_: {
        const bool uniform = uniform_flow && values_[inst.args[0]];
        for (const Block& b : inst.blocks) visit(b, uniform);
        break;
      }
      case Op::for_: {
        const bool bounds = all_uniform(inst.args);
        const bool uniform = uniform_flow && bounds && !has_varying_break(inst.blocks[0], false);
        if (!bounds) set_varying(inst.blocks[0].params[0]);
        visit(inst.blocks[0], uniform);
        break;
      }
      case Op::while_: {
        const Value condition = inst.blocks[0].body.back().args[0];
        const bool uniform =
            uniform_flow && values_[condition] && !has_varying_break(inst.blocks[1], false);
        visit(inst.blocks[0], uniform);
        visit(inst.blocks[1], uniform);
        break;
      }
      case Op::fragment_map:
      case Op::fragment_make:
        for (Value param : inst.blocks[0].params) set_varying(param);
        visit(inst.blocks[0], false);
        break;
      case Op::raw:  // lowering has already replaced raw text of other dialects by its block
        for (const Block& b : inst.blocks) visit(b, uniform_flow);
        set_variable_varying(inst.object);
        break;
      default:
        if (!all_uniform(inst.args)) set_varying(inst.result);
        for (const Block& b : inst.blocks) visit(b, uniform_flow);
        break;
    }
  }

  const Kernel& kernel_;
  std::vector<bool> values_;
  std::vector<bool> variables_;
  bool changed_ = false;
  bool checking_ = false;
};

// Checks that every value and variable is used after its definition and inside its block, and that
// breaks are inside loops.
class Scopes {
 public:
  explicit Scopes(const Kernel& kernel)
      : kernel_(kernel),
        values_(kernel.values.size(), false),
        variables_(kernel.variables.size(), false) {
    visit(kernel.body, false);
  }

 private:
  void visit(const Block& block, bool in_loop) {
    std::vector<Value> defined = block.params;
    std::vector<uint32_t> declared;
    for (Value param : block.params) values_[param] = true;
    for (size_t i = 0; i < block.body.size(); ++i) {
      const Inst& inst = block.body[i];
      for (Value arg : inst.args)
        if (arg >= values_.size() || !values_[arg])
          fail(kernel_, inst.where,
               fmt::format("{} uses a value made inside another block; keep it in a Var",
                           op_name(inst.op)));
      const bool uses_variable = inst.op == Op::read || inst.op == Op::assign || inst.op == Op::raw;
      if (uses_variable && !variables_[inst.object])
        fail(kernel_, inst.where,
             fmt::format("variable {} is used outside the block it was declared in",
                         kernel_.variables[inst.object].name));
      if (inst.op == Op::declare) {
        variables_[inst.object] = true;
        declared.push_back(inst.object);
      }
      if (inst.op == Op::break_) {
        if (!in_loop) fail(kernel_, inst.where, "break_ is outside of a loop");
        if (i + 1 != block.body.size())
          fail(kernel_, inst.where, "nothing may follow break_ in its block");
      }
      const bool loop = inst.op == Op::for_ || inst.op == Op::while_;
      for (size_t b = 0; b < inst.blocks.size(); ++b)
        visit(inst.blocks[b], loop || (in_loop && inst.op == Op::if_));
      if (inst.result != kNone) {
        values_[inst.result] = true;
        defined.push_back(inst.result);
      }
    }
    for (Value v : defined) values_[v] = false;
    for (uint32_t v : declared) variables_[v] = false;
  }

  const Kernel& kernel_;
  std::vector<bool> values_;
  std::vector<bool> variables_;
};

bool touches_plan_data(const Kernel& kernel, const Inst& inst) {
  switch (inst.op) {
    case Op::load:
    case Op::load_words: {
      const Memory& memory = kernel.memories[inst.object];
      return memory.space == Space::buffer && !memory.constant;
    }
    case Op::store:
    case Op::store_words:
    case Op::atomic:
      return kernel.memories[inst.object].space == Space::buffer;
    case Op::async_copy:
      return !kernel.memories[inst.object2].constant;
    case Op::fragment_load:
      return kernel.memories[inst.object2].space == Space::buffer &&
             !kernel.memories[inst.object2].constant;
    case Op::fragment_store:
      return kernel.memories[inst.object2].space == Space::buffer;
    default:
      return false;
  }
}

// Checks that every path waits once: at the top level, or in both branches of an if.
class Waits {
 public:
  explicit Waits(const Kernel& kernel) : kernel_(kernel) {}

  // Whether the block waits on all of its paths. waited: whether code before the block has waited.
  bool check(const Block& block, bool waited) const {
    for (const Inst& inst : block.body) {
      const Inst* inner = find(inst);
      if (!inner) {
        if (!waited) check_early(inst);
        continue;
      }
      if (waited)
        fail(kernel_, inner->where, "wait_previous occurs twice; every path must wait once");
      if (inst.op != Op::wait_previous) {
        if (inst.op != Op::if_ || inst.blocks.size() != 2 || !check(inst.blocks[0], false) ||
            !check(inst.blocks[1], false))
          fail(kernel_, inner->where,
               "wait_previous is inside a block; every path must wait: move it outside, or put it "
               "into both branches of an if");
      }
      waited = true;
    }
    return waited;
  }

 private:
  static const Inst* find(const Inst& inst) {
    if (inst.op == Op::wait_previous) return &inst;
    for (const Block& block : inst.blocks)
      for (const Inst& each : block.body)
        if (const Inst* found = find(each)) return found;
    return nullptr;
  }
  void check_early(const Inst& inst) const {
    const auto check_one = [&](const Inst& each) {
      if (touches_plan_data(kernel_, each))
        fail(kernel_, each.where,
             fmt::format("{} is before wait_previous; only buffers declared with weights may be "
                         "read before it",
                         op_name(each.op)));
    };
    check_one(inst);
    for (const Block& block : inst.blocks) walk(block, check_one);
  }

  const Kernel& kernel_;
};

// By default a kernel waits at its start and first lets the next launch start: that launch in turn
// waits until this one has written everything.
void place_wait(Kernel& kernel) {
  size_t waits = 0, nexts = 0;
  walk(kernel.body, [&](const Inst& inst) {
    waits += inst.op == Op::wait_previous;
    nexts += inst.op == Op::launch_next;
  });
  if (waits > 0) Waits(kernel).check(kernel.body, false);
  const auto put_first = [&](Op op) {
    Inst inst;
    inst.op = op;
    inst.where = kernel.where;
    kernel.body.body.insert(kernel.body.body.begin(), inst);
  };
  if (waits == 0) put_first(Op::wait_previous);
  if (nexts == 0) put_first(Op::launch_next);
}

}  // namespace

void verify(Kernel& kernel) {
  Scopes{kernel};
  Uniformity(kernel).check_flow();
  place_wait(kernel);
}

std::vector<bool> uniform_values(const Kernel& kernel) { return Uniformity(kernel).values(); }

}  // namespace prism::ir
