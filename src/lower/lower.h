// Rewrites a kernel into the part of the language a device has, driven by its capabilities.
//
// After lowering, a printer never meets: group_reduce, div_trunc, rem_trunc, div_floor, mod_floor
// (only div_plain), shl, shr (only *_plain), casts from float to integer (only cast_plain), raw of
// another dialect, subgroup_size, and whatever the capabilities say the device lacks.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/capabilities.h"
#include "prism/kernel_ir.h"

namespace prism {

// What depends on one launch rather than on the device alone.
struct LaunchVariant {
  bool folded = false;  // the grid exceeds the device's limits: see Kernel::folded
  std::vector<uint32_t>
      pieces;             // for each buffer, how many bindings it is split into; empty: one each
  uint32_t writable = 0;  // bit i: the buffer of binding i is declared as written, though it is not
  friend bool operator==(const LaunchVariant&, const LaunchVariant&) = default;
};

// Throws kNotSupported naming what the device lacks and cannot be lowered.
ir::Kernel lower(const ir::Kernel& kernel, const ir::Capabilities& capabilities,
                 const LaunchVariant& variant = {});

// Bytes of each piece of a split buffer but the last: a multiple of 256, at most the device's
// binding limit.
uint64_t piece_bytes(const ir::Capabilities& capabilities);

}  // namespace prism
