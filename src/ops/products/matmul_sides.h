// A matrix product on its way to a kernel: what it multiplies, and which way it goes.
#pragma once

#include <optional>
#include <string>

#include "ops/products/matmul_op.h"
#include "ops/products/product_kernels.h"

namespace prism {

struct Sides {
  DeviceView a, b, c;
  MatrixLayout in_a = {}, in_b = {};
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool rounded = false;                     // a is rounded rows
  DType x = DType::f32;                     // of the rows, before they were rounded or narrowed
  TailBinding tail = {};                    // of the kernels that take one
  std::optional<float> scale_epsilon = {};  // a is a rounded row without the scale of a norm
};

// Without the layouts where there is nothing to multiply.
Sides sides_of(const DeviceView& a, const DeviceView& b, const DeviceView& c,
               std::optional<DType> rounded);

// Whether the kernel for few rows can do it. own: what the product would be without a tail.
bool has_few_rows(const Sides& sides, ElementType own);

// One of kProductWays: few rows have kernels of their own, many the vendor's product where there is
// one; unless another way was measured to be faster.
std::string product_way(const DeviceInfo& device, const Sides& sides, ElementType own);

// The type that rows of f32 are rounded to before they are multiplied, by a launch or by whatever
// makes them: the operands' type of a product of many rows. Nothing where it takes f32.
std::optional<DType> narrowed_rows(const Device& device, const Sides& sides, ElementType own);

// Memory that weights of so many elements take unpacked to f32 before a device multiplies so many
// rows by them; 0 where it does not.
uint64_t unpacked_weight_bytes(const DeviceInfo& device, int64_t rows, int64_t elements);

// The kernel for few rows, without its tail.
ops::VectorProduct few_rows_product(const DeviceInfo& device, const Sides& sides);

}  // namespace prism
