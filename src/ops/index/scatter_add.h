// Rows added to those that indices name, on devices with kernels.
#pragma once

#include "tensor/plan/device_call.h"

namespace prism::ops {

// y[indices[i]] += rows[i], rows of one index in their order: the same sum in every run. Indices
// (dense, i32 or i64) outside of y's rows are passed over.
void launch_scatter_add(DeviceCall& call, const DeviceView& indices, const DeviceView& rows,
                        const DeviceView& y);

}  // namespace prism::ops
