// Which power of two every value of a kernel is known to be a multiple of.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism {

// For each value, the largest power of two up to 256 that it is proven to be a multiple of; 1 where
// nothing is known.
std::vector<uint32_t> known_multiples(const ir::Kernel& kernel);

}  // namespace prism
