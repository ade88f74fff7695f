// Buffers that a kernel accesses as four aligned elements, for languages without pointer casts.
#pragma once

#include <vector>

#include "prism/kernel_ir.h"

namespace prism {

// A load or store of four aligned elements of 4 bytes in a buffer without atomics.
bool is_quad(const ir::Kernel& kernel, const ir::Inst& inst);

// By memory: buffers to declare as vectors of four. Excludes buffers with stores of single
// elements: a store to one element of a vector may write all four.
std::vector<bool> quad_buffers(const ir::Kernel& kernel);

}  // namespace prism
