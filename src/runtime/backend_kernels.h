// Kernels that backends run themselves, to probe behaviour the driver does not report or to replace
// a slow driver function.
#pragma once

#include <cstdint>

#include "prism/kernel_ir.h"

namespace prism {

// One workgroup: x[3] = fma(x[0], x[1], x[2]).
ir::Kernel fma_probe();

// to[i] = from[i] for `count` units of 16 bytes. A workgroup of kCopyLanes lanes copies kCopyLanes
// * kCopyUnits units, so each lane has several loads in flight.
inline constexpr uint32_t kCopyLanes = 256;
inline constexpr uint32_t kCopyUnits = 4;
ir::Kernel copy_units();

// Byte-granular copy for interfaces that only copy whole words: to[to_byte + i] = from[from_byte +
// i] for i < bytes. Each lane writes one word of `to`.
inline constexpr uint32_t kMoveLanes = 64;
ir::Kernel move_bytes();

}  // namespace prism
