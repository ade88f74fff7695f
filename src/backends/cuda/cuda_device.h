// One NVIDIA GPU: its capabilities, its memory and its compiled kernels.
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cuda_context.h"
#include "backends/cuda/nvrtc.h"
#include "backends/gpu_runtime/gpu_device.h"
#include "runtime/driver.h"
#include "runtime/memory_exchange.h"

namespace prism::cuda {

inline constexpr int kOldestCapability = 50;
inline constexpr int kDlpackDevice = 2;  // kDLCUDA

// Facts that need neither a context nor a compiler. kernel_driver: version of the kernel driver,
// may be empty.
DeviceInfo describe_device(const Api& api, Ordinal ordinal, int index,
                           const std::string& kernel_driver);

// Compute capability x10.
int compute_capability(const Api& api, Ordinal ordinal);

class CudaDevice final : public gpu::GpuDevice, public MemoryExchange {
 public:
  CudaDevice(std::shared_ptr<Api> api, Ordinal ordinal, DeviceInfo info,
             std::shared_ptr<Nvrtc> compiler, Target target);

  uint64_t free_bytes() override;
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;
  std::unique_ptr<QueueDriver> make_queue() override;
  bool supports(const NativeProduct& product, std::string* why) override {
    return products_->supports(product, why);
  }
  std::string native_products() override { return products_->describe(); }
  // Memory of another library on this device; host memory is not read in place.
  std::unique_ptr<MemoryDriver> wrap(std::span<std::byte> memory) override;

  MemoryExchange* exchange() override { return this; }
  DlpackDevice device() const override { return {kDlpackDevice, ordinal_}; }
  void* address(MemoryDriver& memory) const override;
  uintptr_t stream(QueueDriver& queue) const override;
  void order(uintptr_t earlier, uintptr_t later) override;

 protected:
  std::shared_ptr<gpu::DeviceContext> context() const override { return context_; }

 private:
  Ordinal ordinal_;
  std::shared_ptr<CudaContext> context_;
  std::shared_ptr<Cublas> products_;
  std::shared_ptr<Nvrtc> compiler_;
  Target target_;
};

}  // namespace prism::cuda
