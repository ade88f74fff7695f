// Which buffers a kernel reads and writes by four aligned elements, for languages where memory has
// one type and no pointers of another.
#pragma once

#include <vector>

#include "prism/kernel_ir.h"

namespace prism {

// A load or store of four aligned elements of 4 bytes in a buffer without atomics.
bool is_quad(const ir::Kernel& kernel, const ir::Inst& inst);

// By memory: buffers to declare as vectors of four. Not where single elements are stored: a store
// of one element of a vector may write all four.
std::vector<bool> quad_buffers(const ir::Kernel& kernel);

}  // namespace prism
