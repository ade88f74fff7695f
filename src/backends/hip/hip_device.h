// One AMD GPU: its capabilities and its compiled kernels.
#pragma once

#include <memory>
#include <string>

#include "backends/gpu_runtime/gpu_device.h"
#include "backends/hip/hip_api.h"
#include "backends/hip/hiprtc.h"

namespace prism::hip {

// Device facts from ROCm and the chip's gfx number.
DeviceInfo describe_device(const Api& api, int index, const std::string& gfx);

class HipDevice final : public gpu::GpuDevice {
 public:
  HipDevice(std::shared_ptr<Api> api, int index, DeviceInfo info, std::shared_ptr<Hiprtc> compiler,
            std::string gfx);

  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override;

 protected:
  std::shared_ptr<gpu::DeviceContext> context() const override { return context_; }

 private:
  std::shared_ptr<gpu::DeviceContext> context_;
  std::shared_ptr<Hiprtc> compiler_;
  std::string gfx_;
};

}  // namespace prism::hip
