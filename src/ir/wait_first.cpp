// Removes the waits and lets verify() insert one at the start.
#include "ir/wait_first.h"

#include "ir/verify.h"

namespace prism::ir {

namespace {

void drop_waits(Block& block) {
  std::erase_if(block.body, [](const Inst& inst) { return inst.op == Op::wait_previous; });
  for (Inst& inst : block.body)
    for (Block& inner : inst.blocks) drop_waits(inner);
}

}  // namespace

Kernel waiting_first(Kernel kernel) {
  for (Memory& memory : kernel.memories) memory.constant = false;
  drop_waits(kernel.body);
  verify(kernel);
  return kernel;
}

}  // namespace prism::ir
