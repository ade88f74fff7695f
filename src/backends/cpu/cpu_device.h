// The CPU device: memory, programs, and the threads that run them.
#pragma once

#include <memory>

#include "base/system/thread_pool.h"
#include "ir/interpreter/interpreter.h"
#include "runtime/driver.h"

namespace prism::cpu {

class Memory final : public MemoryDriver {
 public:
  Memory(std::byte* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  ~Memory() override;
  uint64_t bytes() const override { return bytes_; }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
  uint64_t bytes_;
};

class Program final : public ProgramDriver {
 public:
  Program(const ir::Kernel& kernel, const ir::InterpretOptions& options);
  const ir::Interpreter& interpreter() const { return interpreter_; }
  const std::string& kernel_name() const { return name_; }

 private:
  std::string name_;
  ir::Interpreter interpreter_;
};

class Device final : public DeviceDriver {
 public:
  Device();
  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override;
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;
  std::byte* host_pointer(MemoryDriver& memory) override {
    return static_cast<Memory&>(memory).data();
  }

 private:
  DeviceInfo info_;
  bool checked_;  // programs run in the interpreter's checked mode
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace prism::cpu
