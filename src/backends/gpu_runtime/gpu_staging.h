// Page-locked memory through which host data reaches a stream, so that copies run beside the host.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "backends/gpu_runtime/gpu_context.h"
#include "base/handle.h"

namespace prism::gpu {

// Two slots used in turn; small writes share one. The context must be current in every call.
class Staging {
 public:
  explicit Staging(std::shared_ptr<DeviceContext> context) : context_(std::move(context)) {}

  // The data may be reused after the call; the copies run in the stream's order.
  Result write(DevicePointer to, std::span<const std::byte> from, Stream stream);
  // Returns when the data is there.
  Result read(DevicePointer from, std::span<std::byte> to, Stream stream);

 private:
  // Large enough that a copy's start is lost in its time at 50 GB/s, small enough to be forgotten
  // in host memory.
  static constexpr size_t kSlotBytes = 4u << 20;

  struct Slot {
    Handle<std::byte*> memory;
    Handle<Event> event;
    bool busy = false;  // the event says when the slot may be used again
  };

  void prepare();
  // The other slot becomes the current one and is empty.
  Result turn(Stream stream);

  std::shared_ptr<DeviceContext> context_;
  std::array<Slot, 2> slots_;
  size_t current_ = 0;
  size_t used_ = 0;
};

}  // namespace prism::gpu
