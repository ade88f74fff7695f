// Lowers a kernel to the subset of the language that a device supports.
//
// After lowering, a printer never sees group_reduce, div_trunc, rem_trunc, div_floor, mod_floor
// (only div_plain), shl, shr (only *_plain), casts from float to integer (only cast_plain), raw of
// another dialect, subgroup_size, or anything the capabilities exclude.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism {

// Properties of one launch, as opposed to the device.
struct LaunchVariant {
  bool folded = false;  // the grid exceeds the device's limits: see Kernel::folded
  std::vector<uint32_t>
      pieces;  // for each buffer, the number of bindings it is split into; empty: one each
  uint32_t writable = 0;  // bit i: declare the buffer of binding i as written even if it is not
  friend bool operator==(const LaunchVariant&, const LaunchVariant&) = default;
};

// Throws kNotSupported naming the missing feature if it cannot be lowered.
ir::Kernel lower(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                 const LaunchVariant& variant = {});

// The size of every piece of a split buffer but the last: a multiple of 256, at most the device's
// binding limit.
uint64_t piece_bytes(const ir::Capabilities& capabilities);

}  // namespace prism
