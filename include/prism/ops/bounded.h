// Bounded dimensions: a plan is made for the maximum length of an axis; the used length is data in
// device memory that may differ in every run.
//
// Elements beyond the count are unspecified. Ops that treat positions of the axis independently
// (elementwise ops, norms and products of rows) need no mask. Before ops that combine positions (a
// reduction along the axis, a softmax, the inner dimension of a product) use mask_beyond(), which
// is fused into their launch. cached_attention() takes counts as spans. Rows that write_rows() must
// skip have the index -1: mask_beyond(indices, 0, count, -1).
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// x at positions below count along the axis, value elsewhere, even if x is NaN there. count is i32
// or i64: one number, or a shape that broadcasts to x's with length 1 along the axis (one count per
// row). Counts are clamped to the axis.
Tensor mask_beyond(const Tensor& x, int axis, const Tensor& count, double value = 0);

}  // namespace prism

#pragma GCC visibility pop
