// Two alternating page-locked slots, each guarded by an event.
#include "backends/gpu_runtime/gpu_staging.h"

#include <algorithm>
#include <cstring>

namespace prism::gpu {

void Staging::prepare() {
  if (slots_[0].memory) return;
  const Api& api = context_->api();
  for (Slot& slot : slots_) {
    void* memory = nullptr;
    check(api, api.host_allocate(&memory, kSlotBytes, kHostAllocPortable),
          "allocating page-locked host memory for copies");
    const auto context = context_;
    slot.memory = Handle<std::byte*>(static_cast<std::byte*>(memory), [context](std::byte* p) {
      quietly(*context, [&](const Api& a) { a.host_free(p); });
    });
    Event event = nullptr;
    check(api, api.event_create(&event, kEventWithoutTiming), "creating an event");
    slot.event = Handle<Event>(event, [context](Event e) {
      quietly(*context, [&](const Api& a) { a.event_destroy(e); });
    });
  }
}

Result Staging::turn(Stream stream) {
  const Api& api = context_->api();
  if (used_ > 0) {
    if (const Result result = api.event_record(slots_[current_].event.get(), stream)) return result;
    slots_[current_].busy = true;
  }
  current_ ^= 1;
  used_ = 0;
  Slot& slot = slots_[current_];
  if (slot.busy) {
    slot.busy = false;
    return api.event_synchronize(slot.event.get());
  }
  return kSuccess;
}

Result Staging::write(DevicePointer to, std::span<const std::byte> from, Stream stream) {
  prepare();
  while (!from.empty()) {
    const size_t bytes = std::min(from.size(), kSlotBytes);
    if (used_ + bytes > kSlotBytes)
      if (const Result result = turn(stream)) return result;
    std::byte* room = slots_[current_].memory.get() + used_;
    std::memcpy(room, from.data(), bytes);
    used_ += (bytes + 15) / 16 * 16;
    if (const Result result = context_->api().copy_to_device(to, room, bytes, stream))
      return result;
    to += bytes;
    from = from.subspan(bytes);
  }
  return kSuccess;
}

Result Staging::read(DevicePointer from, std::span<std::byte> to, Stream stream) {
  prepare();
  const Api& api = context_->api();
  std::span<std::byte> waiting;  // destination of the slot in flight
  size_t waiting_slot = 0;
  const auto drain = [&]() -> Result {
    if (waiting.empty()) return kSuccess;
    if (const Result result = api.event_synchronize(slots_[waiting_slot].event.get()))
      return result;
    slots_[waiting_slot].busy = false;
    std::memcpy(waiting.data(), slots_[waiting_slot].memory.get(), waiting.size());
    waiting = {};
    return kSuccess;
  };
  while (!to.empty()) {
    if (const Result result = turn(stream)) return result;
    const size_t bytes = std::min(to.size(), kSlotBytes);
    Slot& slot = slots_[current_];
    if (const Result result = api.copy_to_host(slot.memory.get(), from, bytes, stream))
      return result;
    if (const Result result = api.event_record(slot.event.get(), stream)) return result;
    slot.busy = true;
    used_ = 0;
    // Drain the previous slot while this one fills.
    if (const Result result = drain()) return result;
    waiting = to.first(bytes);
    waiting_slot = current_;
    from += bytes;
    to = to.subspan(bytes);
  }
  return drain();
}

}  // namespace prism::gpu
