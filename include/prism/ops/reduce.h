// Reductions over axes of a tensor: sums, extremes and moments.
//
// Negative axes count from the end; without axes all are reduced. keep_dims keeps reduced axes with
// length 1. Integers of up to 32 bits and bool are summed in i32, i64 in i64; both wrap. Float sums
// accumulate in f32 or wider and are rounded to the input's type once.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);  // empty: 0
Tensor mean(const Tensor& x, const Axes& axes = {},
            bool keep_dims = false);  // floats; empty: NaN
// Propagates NaN. Throws kInvalidArgument without elements.
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
// The first index (i32) of the extreme along an axis, or of the first NaN if there is one.
Tensor argmax(const Tensor& x, int axis = -1, bool keep_dims = false);
Tensor argmin(const Tensor& x, int axis = -1, bool keep_dims = false);
// The sum of squared differences from the mean, divided by n - correction. Floats only.
Tensor variance(const Tensor& x, const Axes& axes = {}, double correction = 0,
                bool keep_dims = false);
Tensor all(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);  // bool; empty: true
Tensor any(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);  // empty: false

// The sum of each row of the last axis, in the place of each of its elements: sum(x, {-1}, true)
// expanded to x's shape. What follows it element by element is part of its launch. Floats only.
Tensor row_sum(const Tensor& x);

// The inverse of broadcasting: sums x over the axes along which `shape` was broadcast.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace prism

#pragma GCC visibility pop
