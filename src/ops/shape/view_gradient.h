// view_gradient: the gradient of views. Places the elements of a tensor into zeros, by the layout
// of the view.
#pragma once

#include "prism/tensor.h"

namespace prism {

// Zeros of base_shape, lying dense, but for the elements of x, which lie where layout says: x has
// layout's shape. Elements that a stride of 0 puts in one place are summed. Throws
// kInvalidArgument where the layout reaches outside base_shape.
Tensor view_gradient(const Tensor& x, const Shape& base_shape, const Layout& layout);

// The view of a tensor that layout describes over its elements row by row: what view_gradient
// undoes.
Tensor view(const Tensor& base, const Layout& layout);

}  // namespace prism
