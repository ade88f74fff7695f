// Steps of control flow: jumps and the masks that say which lanes take part.
#pragma once

#include "ir/interpreter_program.h"

namespace prism::ir::vm::flow {

const Step* stop(const Step* s, Frame& f);
const Step* jump(const Step* s, Frame& f);
const Step* jump_unless(const Step* s, Frame& f);  // (b1, uniform)

// (mask, b1 plane): mask = those of the step's mask where b1 is not `bits`; goes to jump when there are none.
const Step* make_mask(const Step* s, Frame& f);
const Step* copy_mask(const Step* s, Frame& f);    // (mask): a copy of the step's mask
// (mask, b1 plane or mask): drops the lanes where the second is 0; goes to jump when none is left.
const Step* narrow_mask(const Step* s, Frame& f);
const Step* drop_lanes(const Step* s, Frame& f);   // (mask): without the lanes of the step's mask

// for_: bits is 1 for i32. head tests the first index, next goes on to `jump` while there is one.
const Step* for_head(const Step* s, Frame& f);          // (index, end), uniform; leaves to jump
const Step* for_next(const Step* s, Frame& f);          // (index, end, step), uniform; back to jump
const Step* for_head_masked(const Step* s, Frame& f);   // (mask, index, end): index and end are planes
const Step* for_next_masked(const Step* s, Frame& f);   // (mask, index, end, step): all planes
const Step* for_head_once(const Step* s, Frame& f);     // (mask, index, end): index is uniform
const Step* for_next_once(const Step* s, Frame& f);     // (mask, index, end, step): index and step are uniform

}  // namespace prism::ir::vm::flow
