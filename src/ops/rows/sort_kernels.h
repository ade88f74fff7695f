// Kernels that sort rows.
#pragma once

#include "tensor/plan/device_call.h"

namespace prism {

// Writes the first `kept` elements of each sorted row of x [rows, length] and their indices (i32).
void launch_sort(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t length, int64_t kept,
                 bool descending, const DeviceView& values, const DeviceView& indices);

}  // namespace prism
