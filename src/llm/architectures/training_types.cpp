// Decides by what a device multiplies fast.
#include "llm/architectures/training_types.h"

#include "ops/products/product_kernels.h"
#include "runtime/native_product.h"

namespace prism::llm {

namespace {

// The longest heads whose gradient has kernels with matrix instructions, and the shortest sequences
// whose attention takes a noticeable part of a step.
constexpr int64_t kMostNarrowDim = 128, kFewestNarrowRows = 256;

}  // namespace

DType layer_type(const Device& device) {
  NativeProduct product;
  product.m = product.n = product.k = 64;
  product.a_type = product.b_type = product.c_type = DType::bf16;
  return device.supports(product) ? DType::bf16 : DType::f32;
}

DType attention_type(const Device& device, DType layers, int64_t head_dim, int64_t tokens) {
  const bool narrows = !device.info().is_cpu && head_dim <= kMostNarrowDim &&
                       tokens >= kFewestNarrowRows &&
                       ops::has_fragments(device.info().capabilities, DType::bf16);
  return narrows ? DType::bf16 : layers;
}

}  // namespace prism::llm
