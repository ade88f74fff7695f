// Ops that are told by other tensors which elements to take or to write.
//
// Indices are i32 or i64 and count from 0. One that is negative or too large is an error on the
// CPU, which names it; other devices cannot throw in the middle of a plan: there it gives zeros
// (NaN from block-quantised tables) and writes nothing.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// y[i..., :] = table[indices[i...], :]: table [n, row...], indices of any shape, y [indices...,
// row...]. Rows of block types come out as f32.
Tensor gather_rows(const Tensor& table, const Tensor& indices);

// base [n, row...] with rows [indices..., row...] written over those that indices name. Of rows
// with one index the last is kept on the CPU, any of them elsewhere; gradients take indices for
// different. Takes over base's memory when nothing else needs it.
Tensor scatter_rows(const Tensor& base, const Tensor& indices, const Tensor& rows);

// The same into base itself, without a copy: a cache that is kept between runs of a plan. base has
// its values, all of it, and is no input of a compiled function; the result is base's memory. What
// reads base in the same plan may see it before or after: read the result. A row with the index -1
// is written nowhere: of a bounded number of rows, those beyond. Has no gradient.
Tensor write_rows(const Tensor& base, const Tensor& indices, const Tensor& rows);

// base with rows added to those that indices name, all of them where an index repeats.
Tensor scatter_add_rows(const Tensor& base, const Tensor& indices, const Tensor& rows);

// y[c] = x[c with indices[c] along axis]; indices and y have x's shape but for that axis.
Tensor take_along(const Tensor& x, const Tensor& indices, int axis);

// The other way round: zeros of x's shape but for `length` along axis, with x[c] added at
// indices[c] along it. Indices have x's shape.
Tensor put_along(const Tensor& x, const Tensor& indices, int axis, int64_t length);

// 1 where the number of the place along a new last axis of `classes` is the index, 0 elsewhere;
// an index outside gives zeros on every device.
Tensor one_hot(const Tensor& indices, int64_t classes, DType type = DType::f32);

}  // namespace prism

#pragma GCC visibility pop
