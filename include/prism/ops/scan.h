// Cumulative sums along an axis.
#pragma once

#include "prism/tensor.h"

#pragma GCC visibility push(default)

namespace prism {

// y[i] = x[0] + ... + x[i] along the axis; from the end if reversed. Integers of up to 32 bits and
// bool are summed in i32, i64 in i64; both wrap.
Tensor cumsum(const Tensor& x, int axis = -1, bool reverse = false);

}  // namespace prism

#pragma GCC visibility pop
