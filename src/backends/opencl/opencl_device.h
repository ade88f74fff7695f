// One OpenCL device: its context, memory, programs and queues.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "backends/opencl/opencl_api.h"
#include "backends/opencl/opencl_facts.h"
#include "runtime/driver.h"

namespace prism::opencl {

class CommandBuffers;

// Shared by all objects created on a device, and alive until the last of them is gone.
struct Context {
  Context(std::shared_ptr<const Api> api, cl_platform_id platform, cl_device_id device,
          DeviceFacts facts);
  ~Context();

  // "opencl:0 (name)", the prefix of every message.
  std::string label() const;
  Handle<cl_command_queue> make_queue() const;
  // The command-buffer recorder, tested once; null if the device has none or it is broken.
  const CommandBuffers* command_buffers();

  std::shared_ptr<const Api> api;
  cl_platform_id platform;
  cl_device_id device;
  DeviceFacts facts;
  Handle<cl_context> context;
  std::atomic<uint64_t> allocated_bytes{0};

 private:
  std::once_flag command_buffers_tried_;
  std::unique_ptr<CommandBuffers> command_buffers_;
};

class Memory final : public MemoryDriver {
 public:
  Memory(std::shared_ptr<Context> context, Handle<cl_mem> buffer, uint64_t bytes,
         uint64_t allocated);
  ~Memory() override;
  uint64_t bytes() const override { return bytes_; }
  cl_mem buffer() const { return buffer_.get(); }
  // Throws kInvalidArgument unless [offset, offset + bytes) is inside the buffer.
  void check_range(const char* doing, uint64_t offset, uint64_t bytes) const;

 private:
  std::shared_ptr<Context> context_;
  Handle<cl_mem> buffer_;
  uint64_t bytes_;
  uint64_t allocated_;
};

class Device final : public DeviceDriver {
 public:
  Device(std::shared_ptr<const Api> api, cl_platform_id platform, cl_device_id device,
         DeviceFacts facts);
  const DeviceInfo& info() const override { return facts_.info; }
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override;
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::vector<std::unique_ptr<ProgramDriver>> compile_together(
      std::span<const ir::Kernel> lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;

  // Created on first use: listing devices must not start them.
  const std::shared_ptr<Context>& context();
  uint64_t allocated_bytes();  // by this process

 private:
  std::shared_ptr<const Api> api_;
  cl_platform_id platform_;
  cl_device_id device_;
  DeviceFacts facts_;
  std::mutex lock_;
  std::shared_ptr<Context> context_;
  Handle<cl_command_queue> allocation_queue_;
};

}  // namespace prism::opencl
