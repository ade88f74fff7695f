// What the interpreter wants to know of a kernel before it translates it.
#pragma once

#include <unordered_map>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir::vm {

struct Analysis {
  // The same in every lane that computes it: kept once. Lanes run in lockstep, so this holds for
  // more than the language promises (any load at one index, the index of a loop whose end varies).
  std::vector<bool> uniform;
  std::vector<bool> uniform_variable;
  // Lanes may leave the loop one by one: it needs a mask of its own.
  std::unordered_map<const Inst*, bool> varying_loop;
  // The value in lane i is the value in lane 0 plus i.
  std::vector<bool> contiguous;
  // The result of a read may share the variable's place: nothing is assigned to it before the last
  // use.
  std::vector<bool> shares_variable;
  // The value's only use is to be assigned to this variable, and it may be computed in the
  // variable's place.
  std::vector<uint32_t> computed_in;
};

Analysis analyse(const Kernel& kernel);

// Tests switch this off: nothing is found out, every value gets a plane and every loop a mask, and
// results must agree.
bool& use_shortcuts();

// Whether a break inside the instruction leaves the loop around it.
bool breaks_out(const Inst& inst);

}  // namespace prism::ir::vm
