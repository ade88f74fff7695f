// Ops with index tensors: reading and writing rows and elements.
//
// Indices are i32 or i64 and count from 0. On the CPU an index out of range is an error that names
// it. Other devices cannot throw inside a plan: they read zeros (NaN from block-quantised tables)
// and write nothing.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// y[i..., :] = table[indices[i...], :]: table [n, row...], indices of any shape, y [indices...,
// row...]. Rows of block types become f32.
Tensor gather_rows(const Tensor& table, const Tensor& indices);

// base [n, row...] with the rows at indices replaced by rows [indices..., row...]. If indices
// repeat, the CPU keeps the last row and other devices keep any; gradients assume distinct indices.
// Reuses base's memory if it has no other users.
Tensor scatter_rows(const Tensor& base, const Tensor& indices, const Tensor& rows);

// Writes into base itself, without a copy: for a cache that persists between runs of a plan. base
// must be a whole, evaluated tensor and not an input of a compiled function; the result shares its
// memory. Readers of base in the same plan may see it before or after the change, so read the
// result. Rows with the index -1 are skipped. Has no gradient.
Tensor write_rows(const Tensor& base, const Tensor& indices, const Tensor& rows);

// base with rows added at indices. Rows of repeated indices are summed.
Tensor scatter_add_rows(const Tensor& base, const Tensor& indices, const Tensor& rows);

// y[c] = x[c with indices[c] along axis]. indices and y have x's shape except along the axis.
Tensor take_along(const Tensor& x, const Tensor& indices, int axis);

// The inverse: zeros of x's shape, but with `length` along the axis, plus x[c] at indices[c] along
// the axis. indices have x's shape.
Tensor put_along(const Tensor& x, const Tensor& indices, int axis, int64_t length);

// Adds a last axis of length `classes`: 1 at the index, 0 elsewhere. An index out of range gives
// zeros on every device.
Tensor one_hot(const Tensor& indices, int64_t classes, DType type = DType::f32);

}  // namespace prism

#pragma GCC visibility pop
