// Finds the buffers that can be declared as vectors of four.
#include "print/quads.h"

namespace prism {

using ir::Op;

bool is_quad(const ir::Kernel& kernel, const ir::Inst& inst) {
  const bool loads = inst.op == Op::load || inst.op == Op::load_words;
  const bool stores = inst.op == Op::store || inst.op == Op::store_words;
  if (!loads && !stores) return false;
  const bool words = inst.op == Op::load_words || inst.op == Op::store_words;
  if ((loads ? inst.type : kernel.values[inst.args[1]]).lanes != 4 || (words && inst.bits < 4))
    return false;
  const ir::Memory& memory = kernel.memories[inst.object];
  return memory.space == ir::Space::buffer && !memory.atomic && dtype_bytes(memory.element) == 4;
}

std::vector<bool> quad_buffers(const ir::Kernel& kernel) {
  std::vector<bool> quads(kernel.memories.size()), stores_one(kernel.memories.size());
  ir::walk(kernel.body, [&](const ir::Inst& inst) {
    if (is_quad(kernel, inst))
      quads[inst.object] = true;
    else if (inst.op == Op::store || inst.op == Op::store_words)
      stores_one[inst.object] = true;
  });
  for (size_t i = 0; i < quads.size(); ++i) quads[i] = quads[i] && !stores_one[i];
  return quads;
}

}  // namespace prism
