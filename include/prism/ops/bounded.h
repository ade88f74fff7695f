// Bounded dimensions: a plan is made for the longest an axis can be, and how much of it counts is
// device data that may differ in every run.
//
// What lies beyond the count is unspecified, and ops that keep places of the axis apart
// (elementwise ops, norms and products of rows) need not know. Where places meet (a reduction along
// the axis, a softmax, the inner dimension of a product) mask_beyond() comes before and joins their
// launch. Counts of caches are the spans of cached_attention(); rows that write_rows() is not to
// write have the index -1: mask_beyond(indices, 0, count, -1).
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// x at places below count along the axis, value at all others, whatever x holds there, NaN too.
// count: i32 or i64, one number, or a shape that broadcasts to that of x with a length of 1 along
// the axis (a count for each row). Negative counts are 0, those beyond the axis all of it.
Tensor mask_beyond(const Tensor& x, int axis, const Tensor& count, double value = 0);

}  // namespace prism

#pragma GCC visibility pop
