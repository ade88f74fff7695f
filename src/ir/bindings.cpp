// Sorts a kernel's buffers by binding and piece.
#include "ir/bindings.h"

#include <algorithm>

namespace prism::ir {

std::vector<uint32_t> bindings(const Kernel& kernel) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < kernel.memories.size(); ++i)
    if (kernel.memories[i].space == Space::buffer) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](uint32_t i) {
    return std::pair(kernel.memories[i].binding, kernel.memories[i].piece);
  });
  return order;
}

std::vector<bool> written_bindings(const Kernel& kernel) {
  std::vector<bool> written;
  for (const uint32_t i : bindings(kernel)) written.push_back(is_written(kernel.memories[i]));
  return written;
}

}  // namespace prism::ir
