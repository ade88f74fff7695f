// Launches of product kernels from ops.
#pragma once

#include <string>
#include <vector>

#include "ops/products/product_kernels.h"
#include "ops/tail.h"
#include "tensor/plan/device_call.h"

namespace prism {

// Up to this many rows a product is bound by reading the weights.
inline constexpr int64_t kFewRows = 8;
// Up to this many rows quantised weights are unpacked as they are multiplied; from here on by a
// launch of its own before the product.
inline constexpr int64_t kPackedRows = 64;

// Launches a kernel with its inputs in order, its tail (which becomes part of product), and its
// output.
void launch_product(DeviceCall& call, ops::VectorProduct product, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output);
void launch_product(DeviceCall& call, ops::FragmentProduct product,
                    const ops::ProductLaunch& launch, std::vector<DeviceView> inputs,
                    const TailBinding& tail, const DeviceView& output);
void launch_product(DeviceCall& call, ops::PackedProduct product, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output);
void launch_product(DeviceCall& call, ops::F32Product product, const ops::ProductLaunch& launch,
                    std::vector<DeviceView> inputs, const TailBinding& tail,
                    const DeviceView& output);

// Several products: weights in order, then the buffers of x. cache: the epilogue that writes cache
// rows, with its params; outputs are its buffers then.
void launch_products(DeviceCall& call, std::vector<ops::VectorProduct> products,
                     const ops::ProductRows& x, const ops::ProductLaunch& launch,
                     std::vector<DeviceView> inputs, const std::vector<TailBinding>& tails,
                     std::span<const DeviceView> outputs, const ops::CacheRows* cache = nullptr,
                     const std::vector<ParamValue>& cache_params = {});

// Rounds rows of x to 8 bits once for all groups of a product with quantised weights.
DeviceView rounded_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                        int64_t x_stride);

void launch_round_rows(DeviceCall& call, const DeviceView& x, int64_t rows, int64_t k,
                       int64_t x_stride, const DeviceView& rounded);
std::string round_rows_key(DType x);

// Writes zeros: the result of empty sums.
void launch_zeros(DeviceCall& call, const DeviceView& y);

inline std::vector<ParamValue> param_values(const std::vector<uint32_t>& words) {
  return {words.begin(), words.end()};
}

}  // namespace prism
