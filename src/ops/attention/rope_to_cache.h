// Keys and values on their way into a cache: one step between the products of a layer and its
// attention.
#pragma once

#include "prism/ops/rope.h"
#include "prism/tensor.h"

namespace prism {

struct CachedRows {
  Tensor q;                 // rotated
  Tensor k_cache, v_cache;  // the caches' own memory, with the rows written
};

// q [rows, heads, dim], k and v [rows, kv_heads, dim] of one type, f32, f16 or bf16; caches
// [slots..., kv_heads, dim] of f32, f16, bf16 or q8_0. places (i32) [rows, 2], device data: the
// position of each row, by which q and k are rotated, and the number of the row of the caches (the
// axes before kv_heads counted as one) that its k and v are written to. frequencies as in rope();
// an empty tensor rotates nothing. A place outside is an error on the CPU and writes nothing
// elsewhere. The caches are changed as write_rows changes its base; there is no gradient.
CachedRows rope_to_cache(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& places,
                         const Tensor& frequencies, const RopeOptions& options,
                         const Tensor& k_cache, const Tensor& v_cache);

}  // namespace prism
