// Page-locked staging memory, so that copies between host and stream run asynchronously.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "backends/gpu_runtime/gpu_context.h"
#include "base/handle.h"

namespace prism::gpu {

// Two alternating slots; small writes share one. The context must be current in every call.
class Staging {
 public:
  explicit Staging(std::shared_ptr<DeviceContext> context) : context_(std::move(context)) {}

  // The data may be reused after the call; the copies run in stream order.
  Result write(DevicePointer to, std::span<const std::byte> from, Stream stream);
  // Returns when the data has arrived.
  Result read(DevicePointer from, std::span<std::byte> to, Stream stream);

 private:
  // Large enough to amortise the start of a copy at 50 GB/s, small enough to be negligible in host
  // memory.
  static constexpr size_t kSlotBytes = 4u << 20;

  struct Slot {
    Handle<std::byte*> memory;
    Handle<Event> event;
    bool busy = false;  // the event signals when the slot can be reused
  };

  void prepare();
  // Switches to the other slot once it is free.
  Result turn(Stream stream);

  std::shared_ptr<DeviceContext> context_;
  std::array<Slot, 2> slots_;
  size_t current_ = 0;
  size_t used_ = 0;
};

}  // namespace prism::gpu
