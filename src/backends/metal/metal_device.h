// One GPU that Metal lists: what it can do, its memory, its programs.
#pragma once

#include <memory>
#include <string>

#include "backends/metal/metal_api.h"
#include "prism/error.h"
#include "runtime/driver.h"

namespace prism::metal {

inline constexpr uint32_t kCopyGroup = 256;  // threads of a group of copy_bytes

struct Pipeline {  // a kernel ready to be dispatched
  Handle<Id> state;
  UInteger group_size = 1;
};

class DeviceOfMetal;
struct Memory final : MemoryDriver {
  // No buffer where the device has no memory. storage: kShared or kPrivate.
  Memory(std::shared_ptr<DeviceOfMetal> on, uint64_t asked, UInteger storage);
  // Over the host's own memory: a buffer of the whole pages that it lies in.
  Memory(std::shared_ptr<DeviceOfMetal> on, std::span<std::byte> host);
  uint64_t bytes() const override { return asked_bytes; }

  std::shared_ptr<DeviceOfMetal> device;
  uint64_t asked_bytes;
  uint64_t start = 0;  // in the buffer
  Handle<Id> buffer;
  std::byte* contents;  // null in a card's own memory
};

// Kept by all that is made on it.
class DeviceOfMetal final : public DeviceDriver,
                            public std::enable_shared_from_this<DeviceOfMetal> {
 public:
  // Needs a pool around it, like everything that sends messages.
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
  void check() const;  // throws kDeviceLost for ever once the device is lost
  // Copies any bytes, 16 a thread; the interface itself copies whole words, and not among launches.
  // Buffers: from, to; params: bytes to skip in each, and to copy.
  const Pipeline& copy_bytes();

  const std::shared_ptr<const Api> api;
  const Handle<Id> device;
  std::string lost;  // why

 private:
  // Empty where the compiler refuses the text. *log may hold warnings too.
  Handle<Id> make_pipeline(const std::string& text, const std::string& entry, std::string* log);

  DeviceInfo info_;
  Pipeline copy_bytes_;
};

struct Program final : ProgramDriver {
  std::shared_ptr<DeviceOfMetal> device;
  Pipeline pipeline;
};

}  // namespace prism::metal
