// Launches of product kernels from ops: their keys, and activations rounded before.
#pragma once

#include <string>
#include <vector>

#include "ops/products/product_kernels.h"
#include "ops/tail.h"
#include "tensor/plan/device_call.h"

namespace prism {

// Up to so many rows each weight is used so seldom that reading it is the work.
inline constexpr int64_t kFewRows = 8;

// A kernel over its inputs in its order, the tail that it ends with (which becomes part of
// product), and its output.
void launch_product(DeviceCall& call, ops::VectorProduct product, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output);
void launch_product(DeviceCall& call, ops::FragmentProduct product,
                    const ops::ProductLaunch& launch, std::vector<DeviceView> inputs,
                    const TailBinding& tail, const DeviceView& output);
void launch_product(DeviceCall& call, ops::F32Product product, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output);

// Several with the same x: weights in order, then x. cache: what makes rows of caches of them, with
// its params; outputs are its buffers then.
void launch_products(DeviceCall& call, std::vector<ops::VectorProduct> products,
                     const ops::ProductLaunch& launch, std::vector<DeviceView> inputs,
                     const std::vector<TailBinding>& tails, std::span<const DeviceView> outputs,
                     const ops::CacheRows* cache = nullptr,
                     const std::vector<ParamValue>& cache_params = {});

// Rows of x rounded to 8 bits once, for all groups of a product with quantised weights.
DeviceView rounded_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                        int64_t x_stride);

void launch_round_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                       int64_t x_stride, const DeviceView& rounded);
std::string round_rows_key(DType x);

// Zeros: what sums of nothing are.
void launch_zeros(DeviceCall& call, const DeviceView& y);

inline std::vector<ParamValue> param_values(const std::vector<uint32_t>& words) {
  return {words.begin(), words.end()};
}

}  // namespace prism
