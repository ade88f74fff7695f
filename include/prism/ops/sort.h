// Rows in order, and their first few.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

struct Ordered {
  Tensor values;   // of the input's type
  Tensor indices;  // i32: where each was along the axis
};

// Equal elements keep their order: the lower index first, in both directions. NaN counts as larger
// than everything.
Ordered sort(const Tensor& x, int axis = -1, bool descending = false);
Tensor argsort(const Tensor& x, int axis = -1, bool descending = false);
// The k largest (or smallest) along the axis, the largest (smallest) first.
Ordered top_k(const Tensor& x, int64_t k, int axis = -1, bool largest = true);

}  // namespace prism

#pragma GCC visibility pop
