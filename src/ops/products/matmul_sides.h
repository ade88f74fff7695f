// The operands of a matrix product, and the choice of its implementation.
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
  DType x = DType::f32;                     // of the rows, before rounding or narrowing
  TailBinding tail = {};                    // for kernels that apply one
  std::optional<float> scale_epsilon = {};  // a is an unscaled rounded row of a norm
};

// Leaves the layouts empty if there is nothing to multiply.
Sides sides_of(const DeviceView& a, const DeviceView& b, const DeviceView& c,
               std::optional<DType> rounded);

// Whether the few-rows kernel supports it. own: the result type without a tail.
bool has_few_rows(const Sides& sides, ElementType own);

// The product with packed weights; nullopt if the device or the operands do not suit it.
std::optional<ops::PackedProduct> packed_product_of(const DeviceInfo& device, const Sides& sides,
                                                    ElementType own);

// The few-rows kernel for few rows, packed weights for some if the device has the fragments, the
// vendor's library for many if there is one, unless another was measured to be faster.
ProductWay product_way(const DeviceInfo& device, const Sides& sides, ElementType own);

// The type that f32 rows are rounded to before a product of many rows, by a launch or by their
// producer: the kernel's operand type. nullopt if the product takes f32.
std::optional<DType> narrowed_rows(const Device& device, const Sides& sides, ElementType own);

// Bytes for weights of `elements` unpacked to f32, if a device unpacks them to multiply this many
// rows; otherwise 0.
uint64_t unpacked_weight_bytes(const DeviceInfo& device, int64_t rows, int64_t elements);

// The few-rows kernel, without its tail.
ops::VectorProduct few_rows_product(const DeviceInfo& device, const Sides& sides);

}  // namespace prism
