// One GPU that Metal lists: what it can do, its memory, its programs.
#pragma once

#include <memory>
#include <string>

#include "backends/metal/metal_api.h"
#include "base/error.h"
#include "runtime/driver.h"

namespace prism::metal {

// Needs a pool around it, like everything below that sends messages.
DeviceInfo describe(const Api& api, Id device, const std::string& id);

// A kernel ready to be dispatched.
struct Pipeline {
  Handle<Id> state;
  std::string kernel;
  UInteger group_size = 1;
};

// What everything made on a device shares.
struct Context {
  Context(std::shared_ptr<const Api> api, Handle<Id> device, DeviceInfo info);
  std::string label() const { return info.id + " (" + info.name + ")"; }
  // Empty with *log where the compiler refuses the text; *log may hold warnings besides.
  Handle<Id> compile(const std::string& text, const std::string& entry, std::string* log) const;
  // Copies bytes at any offset, which the interface does by words only. Params: bytes.
  const Pipeline& copy_bytes();
  void check() const;  // throws kDeviceLost for ever once the device is lost

  std::shared_ptr<const Api> api;
  Handle<Id> device;
  DeviceInfo info;
  std::string lost;  // why

 private:
  Pipeline copy_bytes_;
};

class Memory final : public MemoryDriver {
 public:
  // buffer: empty where the device had no memory. storage: kShared or kPrivate.
  Memory(std::shared_ptr<Context> context, uint64_t bytes, UInteger storage);
  uint64_t bytes() const override { return bytes_; }
  Id buffer() const { return buffer_.get(); }
  std::byte* contents() const { return contents_; }  // null in a card's own memory

 private:
  std::shared_ptr<Context> context_;
  uint64_t bytes_;
  Handle<Id> buffer_;
  std::byte* contents_ = nullptr;
};

struct Program final : ProgramDriver {
  std::shared_ptr<Context> context;
  Pipeline pipeline;
};

class DeviceOfMetal final : public DeviceDriver {
 public:
  DeviceOfMetal(std::shared_ptr<const Api> api, Handle<Id> device, DeviceInfo info);
  const DeviceInfo& info() const override { return context_->info; }
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override;
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;
  std::byte* host_pointer(MemoryDriver& memory) override {
    return static_cast<Memory&>(memory).contents();
  }

 private:
  std::shared_ptr<Context> context_;
};

std::unique_ptr<QueueDriver> make_queue(std::shared_ptr<Context> context);

}  // namespace prism::metal
