// One SYCL device behind the plug-in: memory, programs, queues.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "backends/sycl/plugin/interface.h"
#include "base/dynamic_library.h"
#include "runtime/driver.h"

namespace prism::sycl_backend {

struct Plugin {
  DynamicLibrary library;
  const PrismSyclApi* api = nullptr;
};

class Device final : public DeviceDriver, public std::enable_shared_from_this<Device> {
 public:
  Device(std::shared_ptr<const Plugin> plugin, size_t number, DeviceInfo info);
  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override;
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::vector<std::unique_ptr<ProgramDriver>> compile_together(
      std::span<const ir::Kernel> lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;

  const PrismSyclApi& api() const { return *plugin_->api; }
  size_t number() const { return number_; }
  // Throws unless the code says that all is well. doing: "launching add".
  void check(int code, const std::string& doing) const;

  std::atomic<uint64_t> allocated_bytes{0};

 private:
  std::shared_ptr<const Plugin> plugin_;
  size_t number_;
  DeviceInfo info_;
};

class Memory final : public MemoryDriver {
 public:
  Memory(std::shared_ptr<Device> device, void* address, uint64_t bytes);
  ~Memory() override;
  uint64_t bytes() const override { return bytes_; }
  std::byte* address() const { return static_cast<std::byte*>(address_); }

 private:
  std::shared_ptr<Device> device_;
  void* address_;
  uint64_t bytes_;
};

class Program final : public ProgramDriver {
 public:
  Program(std::shared_ptr<Device> device, void* kernel)
      : device_(std::move(device)), kernel_(kernel) {}
  ~Program() override { device_->api().release_kernel(kernel_); }
  void* kernel() const { return kernel_; }

 private:
  std::shared_ptr<Device> device_;
  void* kernel_;
};

std::unique_ptr<QueueDriver> make_sycl_queue(std::shared_ptr<Device> device);

}  // namespace prism::sycl_backend
