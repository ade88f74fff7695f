// Making the parameters of layers.
#pragma once

#include "prism/tensor.h"

namespace prism::nn {

// An f32 parameter filled with a value; kInvalidArgument for an axis without elements.
Tensor new_parameter(const Shape& shape, const Device& device, double value = 0);

}  // namespace prism::nn
