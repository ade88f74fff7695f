// Sums, extremes and moments over axes of a tensor.
//
// Axes count from the end when negative; none named means all. keep_dims leaves a length of 1 in
// the place of each. Integers of up to 32 bits and bool sum as i32, i64 as i64; both wrap. Sums of
// floats are kept in f32 or better and rounded to the input's type once.
#pragma once

#include <span>
#include <vector>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

using Axes = std::vector<int>;

Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);  // of nothing: 0
Tensor mean(const Tensor& x, const Axes& axes = {},
            bool keep_dims = false);  // floats; of none: NaN
// NaN wins. Of no elements: kInvalidArgument.
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);
// The first index (i32) of the extreme along an axis; the first NaN's where there is one.
Tensor argmax(const Tensor& x, int axis = -1, bool keep_dims = false);
Tensor argmin(const Tensor& x, int axis = -1, bool keep_dims = false);
// The sum of squared differences from the mean divided by n - correction; of floats.
Tensor variance(const Tensor& x, const Axes& axes = {}, double correction = 0,
                bool keep_dims = false);
Tensor all(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);  // bool; of none: true
Tensor any(const Tensor& x, const Axes& axes = {}, bool keep_dims = false);  // of none: false

// The inverse of broadcasting: x summed over the axes along which `shape` was repeated.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace prism

#pragma GCC visibility pop
