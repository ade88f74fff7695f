// Removes statements in order, whole blocks before their contents.
#include "support/kernels/shrink.h"

#include <exception>

#include "ir/verify.h"
#include "lower/passes.h"

namespace prism::test {
namespace {

// Statements, and instructions that dead-code elimination keeps. Yields stay: a block without one
// is invalid.
bool removable(const ir::Inst& inst) {
  if (inst.op == ir::Op::yield || inst.op == ir::Op::wait_previous) return false;
  return inst.result == ir::kNone || inst.op == ir::Op::atomic ||
         (inst.op >= ir::Op::subgroup_reduce && inst.op <= ir::Op::group_reduce);
}

// Removes the statement at which `countdown` reaches zero.
bool remove_at(ir::Block& block, int& countdown) {
  for (size_t i = 0; i < block.body.size(); ++i) {
    ir::Inst& inst = block.body[i];
    if (removable(inst) && countdown-- == 0) {
      block.body.erase(block.body.begin() + static_cast<std::ptrdiff_t>(i));
      return true;
    }
    for (ir::Block& inner : inst.blocks)
      if (remove_at(inner, countdown)) return true;
  }
  return false;
}

// Replaces the if_ at which `countdown` reaches zero by its blocks.
bool flatten_at(ir::Block& block, int& countdown) {
  for (size_t i = 0; i < block.body.size(); ++i) {
    ir::Inst& inst = block.body[i];
    if (inst.op == ir::Op::if_ && countdown-- == 0) {
      std::vector<ir::Inst> inside = std::move(inst.blocks[0].body);
      for (ir::Inst& other : inst.blocks[1].body) inside.push_back(std::move(other));
      block.body.erase(block.body.begin() + static_cast<std::ptrdiff_t>(i));
      block.body.insert(block.body.begin() + static_cast<std::ptrdiff_t>(i), inside.begin(),
                        inside.end());
      return true;
    }
    for (ir::Block& inner : inst.blocks)
      if (flatten_at(inner, countdown)) return true;
  }
  return false;
}

ir::Kernel without_dead_values(const ir::Kernel& kernel) {
  ir::Capabilities keeps_waits;
  keeps_waits.dependent_launch = true;
  return lower_detail::clean_up(kernel, keeps_waits);
}

using Cut = bool (*)(ir::Block&, int&);

}  // namespace

ir::Kernel shrink(const ir::Kernel& kernel,
                  const std::function<bool(const ir::Kernel&)>& still_wrong, int tries) {
  ir::Kernel best = kernel;
  for (Cut cut : {&remove_at, &flatten_at, &remove_at})
    for (int at = 0; tries > 0;) {
      ir::Kernel candidate = best;
      int countdown = at;
      if (!cut(candidate.body, countdown)) break;
      bool wrong = false;
      try {
        candidate = without_dead_values(candidate);
        ir::verify(candidate);
        --tries;
        wrong = still_wrong(candidate);
      } catch (const std::exception&) {
        wrong = false;
      }
      if (wrong)
        best = std::move(candidate);  // the next statement is now at this position
      else
        ++at;
    }
  return best;
}

}  // namespace prism::test
