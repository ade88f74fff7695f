// Kernels of the gradients of norms: one pass over the rows, then the sums of their columns.
#pragma once

#include <cstdint>

#include "tensor/plan/device_call.h"

namespace prism {

// Whether a row fits the registers of a group.
bool has_norm_gradient_kernel(int64_t row_length);

// Inputs: x (f32), g (f32, f16 or bf16), the weight (f32) if there is one. Outputs: the gradients
// of x, weight and bias, f32.
void launch_norm_gradient(DeviceCall& call, bool centred, double epsilon);

}  // namespace prism
