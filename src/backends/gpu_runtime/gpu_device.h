// The common part of CUDA and HIP devices: memory, and programs cached on disk.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/gpu_runtime/gpu_context.h"
#include "backends/gpu_runtime/gpu_queue.h"
#include "backends/gpu_runtime/gpu_rtc.h"
#include "base/handle.h"
#include "runtime/compile_error.h"
#include "runtime/driver.h"

namespace prism::gpu {

// "0000:65:00.0", lower case, as in every backend. Some systems pad the domain to eight digits.
std::string pci_address(std::string address);

class GpuDevice : public DeviceDriver {
 public:
  explicit GpuDevice(DeviceInfo info) : info_(std::move(info)) {}

  const DeviceInfo& info() const override { return info_; }
  uint64_t free_bytes() override;
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override;
  std::unique_ptr<QueueDriver> make_queue() override;

 protected:
  struct Loaded {
    Handle<Module> module;
    Function function = nullptr;
  };
  // The function of a compiled text, from the cache folder if present. options: compiler options
  // and version, part of the key. by: "NVRTC 12.9 for sm_90", for messages. The context must be
  // current.
  Loaded load(const ir::Kernel& lowered, const KernelText& kernel, const std::string& entry,
              const std::string& options, const std::string& by,
              const std::function<Compiled()>& compile);

  virtual std::shared_ptr<DeviceContext> context() const = 0;

 private:
  DeviceInfo info_;
};

}  // namespace prism::gpu
