// Sorting and selection along an axis.
#pragma once

#include <cstdint>

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

struct Ordered {
  Tensor values;   // in the input's type
  Tensor indices;  // i32: the values' indices along the axis of the input
};

// Stable in both directions: equal elements keep their order. NaN is larger than all numbers.
Ordered sort(const Tensor& x, int axis = -1, bool descending = false);
Tensor argsort(const Tensor& x, int axis = -1, bool descending = false);
// The k largest (or smallest) elements along the axis, the largest (smallest) first.
Ordered top_k(const Tensor& x, int64_t k, int axis = -1, bool largest = true);

}  // namespace prism

#pragma GCC visibility pop
