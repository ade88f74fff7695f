// Writes new keys and values to a cache: the step between the projections of a layer and its
// attention.
#pragma once

#include "prism/ops/rope.h"
#include "prism/tensor.h"

namespace prism {

struct CachedRows {
  Tensor q;                 // rotated
  Tensor k_cache, v_cache;  // the memory of the caches, with the rows written
};

// q [rows, heads, dim], k [rows, kv_heads, dim], v the same of any dim, all f32, f16 or bf16;
// caches [slots..., kv_heads, dim] of f32, f16, bf16 or q8_0. v and v_cache are both empty if the
// values are part of the keys. places (i32) [rows, 2] is device data: the position of
// each row, by which q and k are rotated, and the row of the caches (all axes before kv_heads
// flattened) to which its k and v are written. frequencies as in rope(); an empty tensor rotates
// nothing. A place out of range is an error on the CPU and ignored on other devices. The caches are
// changed in place, as by write_rows; there is no gradient.
CachedRows rope_to_cache(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& places,
                         const Tensor& frequencies, const RopeOptions& options,
                         const Tensor& k_cache, const Tensor& v_cache);

}  // namespace prism
