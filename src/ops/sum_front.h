// The sum of the rows of a matrix: what coinciding places of a view amount to.
#pragma once

#include "tensor/tensor.h"

namespace prism {

// [n, m] to [m], of the same type; floats are summed in f32 or wider. Throws kInvalidArgument for
// other shapes, and for block types and bool.
Tensor sum_front(const Tensor& x);

}  // namespace prism
