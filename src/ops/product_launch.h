// Launches of product kernels from ops: their keys, and activations rounded before.
#pragma once

#include <span>

#include "ops/product_kernels.h"
#include "tensor/device_call.h"

namespace prism {

// Up to so many rows each weight is used so seldom that reading it is the work.
inline constexpr int64_t kFewRows = 8;

// Of a kernel's buffers in its order.
void launch_product(DeviceCall& call, const ops::VectorProduct& product,
                    const ops::ProductLaunch& launch, std::span<const DeviceView> buffers);
void launch_product(DeviceCall& call, const ops::FragmentProduct& product,
                    const ops::ProductLaunch& launch, std::span<const DeviceView> buffers);

// Rows of x rounded to 8 bits once, for all groups of a product with quantised weights.
DeviceView rounded_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                        int64_t x_stride);

// Zeros: what sums of nothing are.
void launch_zeros(DeviceCall& call, const DeviceView& y);

inline std::vector<ParamValue> param_values(const std::vector<uint32_t>& words) {
  return {words.begin(), words.end()};
}

}  // namespace prism
