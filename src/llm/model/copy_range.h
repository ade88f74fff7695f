// Copies within the memory of one tensor, in the order of its device's queue.
#pragma once

#include <cstdint>

#include "tensor/storage.h"

namespace prism::llm {

// The ranges must not overlap.
void copy_range(const Storage& storage, uint64_t from, uint64_t to, uint64_t bytes);

}  // namespace prism::llm
