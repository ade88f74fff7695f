// Tensors over memory that other libraries in the process share with us, and the reverse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "prism/tensor.h"
#include "runtime/memory_exchange.h"

namespace prism {

// The memory of a tensor for another library.
struct LentMemory {
  void* data = nullptr;  // the first element
  DlpackDevice device;
  // Keeps the memory. On a GPU its release makes our later work wait for what other libraries have
  // submitted to the default stream until then.
  std::shared_ptr<void> owner;
};

// Computes the tensor. On a GPU the other library's stream waits for the values; without a stream
// nothing waits. Throws kNotSupported if other libraries cannot address the tensor's memory.
LentMemory lend(const Tensor& tensor, std::optional<uintptr_t> stream);

// A tensor of one axis over `elements` elements of another library's memory on the device, which
// `memory` keeps alive. What the device queues from now on reads it. Throws kInvalidArgument if the
// memory is not the device's or its address does not fit the type.
Tensor borrow(const Device& device, std::shared_ptr<const std::byte> memory, int64_t elements,
              ElementType type);

}  // namespace prism
