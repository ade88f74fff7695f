// Kernels that backends run for themselves: to find out what a driver does not say, or to do what
// it does slowly.
#pragma once

#include <cstdint>

#include "prism/kernel_ir.h"

namespace prism {

// One group: x[3] = fma(x[0], x[1], x[2]).
ir::Kernel fma_probe();

// to[i] = from[i] for `count` units of 16 bytes. A group of kCopyLanes lanes moves kCopyLanes *
// kCopyUnits of them: several loads of a lane are under way at once.
inline constexpr uint32_t kCopyLanes = 256;
inline constexpr uint32_t kCopyUnits = 4;
ir::Kernel copy_units();

// Bytes from any place to any, where an interface moves whole words only: to[to_byte + i] =
// from[from_byte + i] for i < bytes. A lane writes one word of `to`.
inline constexpr uint32_t kMoveLanes = 64;
ir::Kernel move_bytes();

}  // namespace prism
