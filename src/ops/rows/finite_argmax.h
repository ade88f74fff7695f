// The argmax that chooses tokens: it reports rows from which nothing can be chosen.
#pragma once

#include "prism/tensor.h"

namespace prism {

// The first index (i32) of the maximum along the last axis of floats, or -1 if the maximum is not
// finite: the row has a NaN or +infinity, or only -infinity.
Tensor finite_argmax(const Tensor& x);

}  // namespace prism
