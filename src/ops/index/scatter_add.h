// The launches of scatter_add_rows.
#pragma once

#include "tensor/plan/device_call.h"

namespace prism::ops {

// y[indices[i]] += rows[i]. Rows of one index are added in their order, so that every run gives the
// same sum. Indices (dense, i32 or i64) outside of y's rows are ignored.
void launch_scatter_add(DeviceCall& call, const DeviceView& indices, const DeviceView& rows,
                        const DeviceView& y);

}  // namespace prism::ops
