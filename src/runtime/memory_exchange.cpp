// Exchange of memory and the order of streams, through the handles of devices.
#include "runtime/memory_exchange.h"

#include <mutex>

#include "prism/error.h"
#include "runtime/device_state.h"

namespace prism {
namespace {

MemoryExchange& exchange_of(const Device& device) {
  if (MemoryExchange* exchange = device.driver().exchange()) return *exchange;
  throw Error(ErrorCode::kNotSupported,
              "exchange of memory: other libraries cannot address the "
              "memory of " +
                  device.id() + "; copy it to the CPU");
}

template <class Body>
auto with_stream(const Device& device, Body&& body) {
  MemoryExchange& exchange = exchange_of(device);
  const Queue& queue = device.queue();
  const std::scoped_lock lock(DeviceState::mutex_of(queue));
  return body(exchange, exchange.stream(DeviceState::driver_of(queue)));
}

}  // namespace

std::optional<DlpackDevice> dlpack_device(const Device& device) {
  if (device.info().is_cpu) return DlpackDevice{kDlpackCpu, 0};
  const MemoryExchange* exchange = device.driver().exchange();
  return exchange ? std::optional(exchange->device()) : std::nullopt;
}

Device find_device(DlpackDevice wanted) {
  if (wanted.type == kDlpackCpu) return Device::cpu();
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices)
      if (MemoryExchange* exchange = driver->exchange(); exchange && exchange->device() == wanted)
        return Device::named(driver->info().id);
  return {};
}

void* address_of(const Buffer& buffer, const Device& device) {
  return exchange_of(device).address(buffer.driver());
}

uintptr_t stream_of(const Device& device) {
  return with_stream(device, [](MemoryExchange&, uintptr_t own) { return own; });
}

void order_before(const Device& device, uintptr_t stream) {
  with_stream(device,
              [&](MemoryExchange& exchange, uintptr_t own) { exchange.order(own, stream); });
}

void order_after(const Device& device, uintptr_t stream) {
  with_stream(device,
              [&](MemoryExchange& exchange, uintptr_t own) { exchange.order(stream, own); });
}

}  // namespace prism
