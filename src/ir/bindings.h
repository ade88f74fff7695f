// The buffers of a kernel in the order in which every dialect and driver takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir {

// Indices into kernel.memories, by binding, the pieces of a split buffer one after another.
std::vector<uint32_t> bindings(const Kernel& kernel);

inline bool is_written(const Memory& memory) {
  return memory.atomic || memory.access != Access::read;
}
// Which of the bindings the kernel writes.
std::vector<bool> written_bindings(const Kernel& kernel);

}  // namespace prism::ir
