// Random control flow and variables against a plain evaluator that runs the IR directly, one lane
// after another.
//
// Values die early here, and variables change while older reads of them are still in use: the cases
// in which a translator that shares and reuses storage could go wrong.
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "prism/kernel.h"
#include "support/kernels/interpreter_testing.h"

namespace prism::interpreter_testing {
namespace {

using namespace dsl;

// One lane of a kernel of u32 arithmetic, variables and control flow that ends in one store.
class Lane {
 public:
  Lane(const ir::Kernel& kernel, uint32_t lane)
      : lane_(lane), values_(kernel.values.size()), variables_(kernel.variables.size()) {
    run(kernel.body);
  }
  uint32_t stored() const { return stored_; }

 private:
  uint32_t operand(const ir::Inst& inst, size_t index) const { return values_[inst.args[index]]; }

  // Returns false if a break leaves the enclosing loop.
  bool run(const ir::Block& block) {
    for (const ir::Inst& inst : block.body)
      if (!run(inst)) return false;
    return true;
  }

  bool run(const ir::Inst& inst) {
    switch (inst.op) {
      case ir::Op::break_:
        return false;
      case ir::Op::if_:
        return run(inst.blocks[operand(inst, 0) ? 0 : 1]);
      case ir::Op::for_:
        for (uint64_t i = operand(inst, 0), end = operand(inst, 1), step = operand(inst, 2);
             i < end; i += step) {
          values_[inst.blocks[0].params[0]] = static_cast<uint32_t>(i);
          if (!run(inst.blocks[0])) break;
        }
        return true;
      case ir::Op::while_:
        while (run(inst.blocks[0]) && values_[inst.blocks[0].body.back().args[0]])
          if (!run(inst.blocks[1])) break;
        return true;
      case ir::Op::declare:
      case ir::Op::assign:
        variables_[inst.object] = operand(inst, 0);
        return true;
      case ir::Op::store:
        stored_ = operand(inst, 1);
        return true;
      case ir::Op::yield:
      case ir::Op::wait_previous:
      case ir::Op::launch_next:
        return true;
      default:
        values_[inst.result] = value(inst);
        return true;
    }
  }

  uint32_t value(const ir::Inst& inst) const {
    const auto a = [&] { return operand(inst, 0); };
    const auto b = [&] { return operand(inst, 1); };
    switch (inst.op) {
      case ir::Op::constant:
        return static_cast<uint32_t>(inst.bits);
      case ir::Op::local_id:
        return lane_;
      case ir::Op::group_count:
        return 1;
      case ir::Op::read:
        return variables_[inst.object];
      case ir::Op::add:
        return a() + b();
      case ir::Op::sub:
        return a() - b();
      case ir::Op::mul:
        return a() * b();
      case ir::Op::bit_xor:
        return a() ^ b();
      case ir::Op::bit_and:
        return a() & b();
      case ir::Op::lt:
        return a() < b();
      case ir::Op::select:
        return a() ? b() : operand(inst, 2);
      default:
        ADD_FAILURE() << "no " << ir::op_name(inst.op);
        return 0;
    }
  }

  uint32_t lane_;
  std::vector<uint32_t> values_, variables_;
  uint32_t stored_ = 0;
};

class Writer {
 public:
  explicit Writer(uint32_t seed) : random_(seed) {}

  Kernel kernel() {
    return dsl::kernel("oracle", 24, [&] {
      const Array y = out("y", u32);
      kept_ = {local_id(), group_count()};
      for (int i = 0; i < 3; ++i) variables_.emplace_back(u32, expression());
      statements(8, 0, false);
      Value sum = variables_[0];
      for (size_t i = 1; i < variables_.size(); ++i) sum = sum * 31u + Value(variables_[i]);
      y[local_id()] = sum;
    });
  }

 private:
  uint32_t below(uint32_t limit) { return random_() % limit; }
  Var& variable() { return variables_[below(static_cast<uint32_t>(variables_.size()))]; }

  Value operand() {
    switch (below(variables_.empty() ? 1 : 4)) {
      case 0:
        return constant(u32, below(9));
      case 1:
        return variable();
      default:
        return kept_[below(static_cast<uint32_t>(kept_.size()))];
    }
  }
  Value expression() {
    Value result = operand();
    for (uint32_t n = below(3); n > 0; --n) {
      const Value other = operand();
      switch (below(5)) {
        case 0:
          result = result + other;
          break;
        case 1:
          result = result * other;
          break;
        case 2:
          result = result ^ other;
          break;
        case 3:
          result = result - other;
          break;
        default:
          result = select(result < other, other, result);
          break;
      }
    }
    return result;
  }
  // Half of the conditions are uniform across lanes as long as their variables are.
  Value condition() { return (expression() & 7u) < below(8); }

  void statements(uint32_t count, uint32_t depth, bool in_loop) {
    const size_t kept = kept_.size();
    for (uint32_t i = 0; i < count; ++i) statement(depth, in_loop);
    while (kept_.size() > kept) kept_.pop_back();
  }

  void statement(uint32_t depth, bool in_loop) {
    const auto body = [&](bool loop) { statements(1 + below(4), depth + 1, loop); };
    switch (depth < 3 ? below(9) : below(5)) {
      case 0:
      case 1:
      case 2:
        variable() = expression();
        break;
      case 3:
        kept_.push_back(variable());
        break;
      case 4: {
        Var& target = variable();
        const Value next = expression() + 1u;
        kept_.push_back(target);  // the old value, read after the new one was computed
        if (below(2))
          target = next;
        else
          kept_.push_back(next);
        break;
      }
      case 5:
        if_(
            condition(),
            [&] {
              body(in_loop);
              if (in_loop && below(2)) break_();
            },
            [&] {
              if (below(2)) body(in_loop);
            });
        break;
      case 6:
        for_(operand() & 3u, operand() & 7u, 1u + below(2), [&](Value i) {
          kept_.push_back(i);
          body(true);
          kept_.pop_back();
        });
        break;
      case 7:
        for_(below(5), [&](Value) { body(true); });
        break;
      default: {
        Var turns(u32, 0u);
        const uint32_t most = 1 + below(5);
        while_([&] { return (turns < most) && condition(); },
               [&] {
                 turns += 1u;
                 body(true);
               });
        break;
      }
    }
  }

  std::mt19937 random_;
  std::vector<Var> variables_;
  std::vector<Value> kept_;
};

TEST(InterpreterOracle, RandomControlFlow) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    const Kernel kernel = Writer(seed).kernel();
    std::vector<uint32_t> expected;
    for (uint32_t lane = 0; lane < 24; ++lane) expected.push_back(Lane(kernel, lane).stored());
    ASSERT_EQ(run(kernel, 1, std::vector<uint32_t>(24)), expected) << "seed " << seed << "\n"
                                                                   << ir::to_text(kernel);
  }
}

}  // namespace
}  // namespace prism::interpreter_testing
