// Allocates the KV cache of each layer on that layer's device.
#include "llm/model/kv_cache.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::llm {

KvCache::KvCache(const Config& config, const Placement& placement, int64_t slots, int64_t positions)
    : slots_(slots), positions_(positions), type_(placement.kv_type) {
  if (!(type_ == ElementType(DType::f32)) && !(type_ == ElementType(DType::f16)) &&
      !(type_ == ElementType(BlockType::q8_0)))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("model: KV cache type {} is not supported; use f32, f16 or q8_0",
                            type_.name()));
  if (config.head_dim % type_.block_elements() != 0)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format(
            "model: a {} KV cache needs a head size that is a multiple of {}, this model has "
            "{}; use f16",
            type_.name(), type_.block_elements(), config.head_dim));
  const Shape shape = {slots, positions + 1, config.kv_heads, config.head_dim};
  // Kernels index elements with 32 bits.
  if (shape.elements() >= int64_t{1} << 32)
    throw Error(
        ErrorCode::kNotSupported,
        fmt::format(
            "model: the KV cache has {} elements per layer, the limit is 2^32; use a shorter "
            "context or fewer slots",
            shape.elements()));
  for (const Device& device : placement.layers) {
    keys_.push_back(empty(shape, type_, device));
    values_.push_back(empty(shape, type_, device));
  }
}

uint64_t KvCache::bytes() const {
  uint64_t sum = 0;
  for (const auto* list : {&keys_, &values_})
    for (const Tensor& each : *list) sum += storage_bytes(each.shape(), each.type(), each.device());
  return sum;
}

}  // namespace prism::llm
