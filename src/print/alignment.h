// Alignment analysis: the powers of two that divide each value of a kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/kernel_ir.h"

namespace prism {

// For each value, the largest power of two up to 256 that provably divides it; 1 if unknown.
std::vector<uint32_t> known_multiples(const ir::Kernel& kernel);

}  // namespace prism
