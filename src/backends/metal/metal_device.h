// One Metal GPU: its capabilities, memory and programs.
#pragma once

#include <memory>
#include <string>

#include "backends/metal/metal_api.h"
#include "prism/error.h"
#include "runtime/driver.h"

namespace prism::metal {

inline constexpr uint32_t kCopyGroup = 256;  // threads per group in copy_bytes

struct Pipeline {  // a kernel ready for dispatch
  Handle<Id> state;
  UInteger group_size = 1;
};

class DeviceOfMetal;
struct Memory final : MemoryDriver {
  // `buffer` stays empty if the device is out of memory. storage: kShared or kPrivate.
  Memory(std::shared_ptr<DeviceOfMetal> on, uint64_t asked, UInteger storage);
  // Wraps host memory: the buffer covers the whole pages that contain it.
  Memory(std::shared_ptr<DeviceOfMetal> on, std::span<std::byte> host);
  uint64_t bytes() const override { return asked_bytes; }

  std::shared_ptr<DeviceOfMetal> device;
  uint64_t asked_bytes;
  uint64_t start = 0;  // offset in the buffer
  Handle<Id> buffer;
  std::byte* contents;  // null for private memory
};

// Kept alive by every object created on it.
class DeviceOfMetal final : public DeviceDriver,
                            public std::enable_shared_from_this<DeviceOfMetal> {
 public:
  // Requires an autorelease pool, like every call that sends messages.
  DeviceOfMetal(std::shared_ptr<const Api> opened, Handle<Id> listed, const std::string& id);
  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override;
  std::unique_ptr<MemoryDriver> wrap(std::span<std::byte> host) override;
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;
  std::byte* host_pointer(MemoryDriver& memory) override {
    return static_cast<Memory&>(memory).contents;
  }

  std::string label() const { return info_.id + " (" + info_.name + ")"; }
  void check() const;  // throws kDeviceLost once the device is lost
  // Copies any number of bytes, 16 per thread. Metal's own copy needs whole words and a separate
  // encoder. Buffers: from, to; params: bytes to skip in each, bytes to copy.
  const Pipeline& copy_bytes();

  const std::shared_ptr<const Api> api;
  const Handle<Id> device;
  std::string lost;  // the reason

 private:
  // Empty if compilation fails. *log may also hold warnings.
  Handle<Id> make_pipeline(const std::string& text, const std::string& entry, std::string* log);

  DeviceInfo info_;
  Pipeline copy_bytes_;
};

struct Program final : ProgramDriver {
  std::shared_ptr<DeviceOfMetal> device;
  Pipeline pipeline;
};

}  // namespace prism::metal
