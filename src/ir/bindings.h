// The buffers of a kernel in binding order, as every dialect and driver expects them.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism::ir {

// Indices into kernel.memories in binding order; the pieces of a split buffer are consecutive.
std::vector<uint32_t> bindings(const Kernel& kernel);

inline bool is_written(const Memory& memory) {
  return memory.atomic || memory.access != Access::read;
}
// Which bindings the kernel writes.
std::vector<bool> written_bindings(const Kernel& kernel);

}  // namespace prism::ir
