// The kernel behind rope_to_cache on GPUs.
#pragma once

#include <cstdint>
#include <string>

#include "prism/element_type.h"
#include "prism/kernel_ir.h"
#include "prism/ops/rope.h"

namespace prism::ops {

// The specialisation of a kernel.
struct CacheKernel {
  DType x;            // of q, k and v
  ElementType cache;  // q8_0 or a float type
  uint32_t dim, pairs;
  RopePairing pairing;
  uint32_t value_dim = 0;  // 0: there are no values
  bool one_head = true;    // float caches: one head per group, else heads_each

  std::string key() const;
};

// Buffers: k_cache, v_cache, q, k, v, places, [frequencies], rotated; without values no v_cache and
// v. Params: heads, kv_heads,
// cache_rows, magnitude; row step, head step and offset for each of q, k and v; heads_each if a
// group takes several heads. Grid: (heads of q, k and v / heads_each, rows).
ir::Kernel cache_kernel(const CacheKernel& p);
// heads_each: the largest number of heads per group that still occupies the whole device.
uint32_t heads_of_group(int64_t heads, int64_t rows, uint32_t compute_units);

}  // namespace prism::ops
