// MemoryExchange: a device's memory and streams as other libraries in the process know them.
#pragma once

#include <cstdint>
#include <optional>

#include "prism/device.h"
#include "runtime/driver.h"

namespace prism {

// How DLPack names a device.
struct DlpackDevice {
  int type = 0;
  int ordinal = 0;
  friend bool operator==(const DlpackDevice&, const DlpackDevice&) = default;
};
inline constexpr int kDlpackCpu = 1;
// The stream that other libraries use by default.
inline constexpr uintptr_t kLegacyStream = 1;

// Implemented by devices whose memory has an address that other libraries can use. Streams are the
// driver's handles.
class MemoryExchange {
 public:
  virtual DlpackDevice device() const = 0;
  virtual void* address(MemoryDriver& memory) const = 0;
  virtual uintptr_t stream(QueueDriver& queue) const = 0;
  // What is submitted to `later` from now on runs after everything submitted to `earlier` so far.
  virtual void order(uintptr_t earlier, uintptr_t later) = 0;

 protected:
  ~MemoryExchange() = default;
};

// --- for the handles: each call locks the device
// DLPack's name of a device; nothing if its memory cannot be exchanged.
std::optional<DlpackDevice> dlpack_device(const Device& device);
// The device with that name, or an empty handle.
Device find_device(DlpackDevice wanted);
// The address of the buffer's first byte. The device's memory must be exchangeable.
void* address_of(const Buffer& buffer, const Device& device);
// The stream of the device's default queue, in which tensors are computed.
uintptr_t stream_of(const Device& device);
// Makes the other stream wait for the default queue, or the default queue for the other stream.
void order_before(const Device& device, uintptr_t stream);
void order_after(const Device& device, uintptr_t stream);

}  // namespace prism
