// The kernel behind rope_to_cache on GPUs.
#pragma once

#include <cstdint>
#include <string>

#include "prism/element_type.h"
#include "prism/kernel_ir.h"
#include "prism/ops/rope.h"

namespace prism::ops {

// What a kernel is made for.
struct CacheKernel {
  DType x;            // of q, k and v
  ElementType cache;  // q8_0, or a plain float
  uint32_t dim, pairs;
  RopePairing pairing;
  bool one_head = true;  // caches of floats: a group takes one head, else heads_each

  std::string key() const;
};

// Buffers: k_cache, v_cache, q, k, v, places, [frequencies], rotated. Params: heads, kv_heads,
// cache_rows, magnitude, then row step, head step and offset of q, of k and of v, and where a group
// takes several heads heads_each. Grid: (heads of q, k and v, by heads_each; rows).
ir::Kernel cache_kernel(const CacheKernel& p);
// heads_each: all of the device has work, and as few angles are computed as that allows.
uint32_t heads_of_group(int64_t heads, int64_t rows, uint32_t compute_units);

}  // namespace prism::ops
