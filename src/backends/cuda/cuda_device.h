// One NVIDIA GPU: its capabilities, its memory and its compiled kernels.
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/cublas.h"
#include "backends/cuda/cuda_context.h"
#include "backends/cuda/nvrtc.h"
#include "backends/gpu_runtime/gpu_device.h"
#include "runtime/driver.h"

namespace prism::cuda {

inline constexpr int kOldestCapability = 50;

// Facts that need neither a context nor a compiler. kernel_driver: version of the kernel driver,
// may be empty.
DeviceInfo describe_device(const Api& api, Ordinal ordinal, int index,
                           const std::string& kernel_driver);

// Compute capability x10.
int compute_capability(const Api& api, Ordinal ordinal);

class CudaDevice final : public gpu::GpuDevice {
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

 protected:
  std::shared_ptr<gpu::DeviceContext> context() const override { return context_; }

 private:
  std::shared_ptr<CudaContext> context_;
  std::shared_ptr<Cublas> products_;
  std::shared_ptr<Nvrtc> compiler_;
  Target target_;
};

}  // namespace prism::cuda
