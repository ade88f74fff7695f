// Analysis of a kernel before translation: uniformity and storage sharing.
#pragma once

#include <unordered_map>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir::vm {

struct Analysis {
  // The same in every lane that computes it: stored once. Lanes run in lockstep, so more values are
  // uniform than the language guarantees (any load at one index, the index of a loop whose end
  // varies).
  std::vector<bool> uniform;
  std::vector<bool> uniform_variable;
  // Lanes may leave the loop at different times: it needs its own mask.
  std::unordered_map<const Inst*, bool> varying_loop;
  // The value in lane i is the value in lane 0 plus i.
  std::vector<bool> contiguous;
  // The result of a read may share the variable's storage: nothing is assigned before the last use.
  std::vector<bool> shares_variable;
  // The value is only used to be assigned to this variable and may be computed directly in the
  // variable's storage.
  std::vector<uint32_t> computed_in;
};

Analysis analyse(const Kernel& kernel);

// Tests switch this off: without analysis every value gets a plane and every loop a mask, and the
// results must be the same.
bool& use_shortcuts();

// Whether a break inside the instruction leaves the loop around it.
bool breaks_out(const Inst& inst);

}  // namespace prism::ir::vm
