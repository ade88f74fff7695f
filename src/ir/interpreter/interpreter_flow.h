// Control flow steps: jumps, and masks of the active lanes.
#pragma once

#include "ir/interpreter/interpreter_program.h"

namespace prism::ir::vm {

enum class Flow : uint8_t {
  stop,
  jump,
  jump_unless,  // (b1, uniform)
  make_mask,    // (mask, b1 plane): the lanes of the step's mask where b1 is not `bits`; jumps if
                // there are none
  copy_mask,    // (mask): a copy of the step's mask
  narrow_mask,  // (mask, b1 plane or mask): drops the lanes where the second is 0; jumps if none is
                // left
  drop_lanes,   // (mask): removes the lanes of the step's mask
  // for_, bits 1 for i32: head tests the first index and jumps out of the loop, next jumps back
  // while an index remains.
  for_head,         // (index, end), uniform
  for_next,         // (index, end, step), uniform
  for_head_masked,  // (mask, index, end): index and end are planes
  for_next_masked,  // (mask, index, end, step): all planes
  for_head_once,    // (mask, index, end): index is uniform
  for_next_once,    // (mask, index, end, step): index and step are uniform
};
Run find_flow(Flow flow);

}  // namespace prism::ir::vm
