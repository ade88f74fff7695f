// view_gradient: the gradient of views. It scatters elements into zeros by the view's layout.
#pragma once

#include "prism/tensor.h"

namespace prism {

// A dense tensor of base_shape: the elements of x at the places of layout, zeros elsewhere. x has
// layout's shape. Elements that share a place through a stride of 0 are summed. Throws
// kInvalidArgument if the layout reaches outside base_shape.
Tensor view_gradient(const Tensor& x, const Shape& base_shape, const Layout& layout);

// The view of a tensor that layout describes over its elements in row-major order.
Tensor view(const Tensor& base, const Layout& layout);

}  // namespace prism
