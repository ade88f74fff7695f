// A device's primary context, created on first use and shared by all objects in it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/cuda_api.h"
#include "backends/gpu_runtime/gpu_context.h"

namespace prism::cuda {

using gpu::Current;
using gpu::quietly;

// Other CUDA libraries in the process use the same primary context. Creating it takes card memory
// and a tenth of a second, so a device that is only listed has none.
class CudaContext final : public gpu::DeviceContext {
 public:
  CudaContext(std::shared_ptr<Api> api, Ordinal ordinal, std::string device);
  ~CudaContext() override;

  const Api& api() const override { return *api_; }
  void enter(int* before) override;
  void leave(int before) override;
  bool exists();  // whether it was created

 private:
  Context get();  // throws if it cannot be created

  std::shared_ptr<Api> api_;
  Ordinal ordinal_;
  std::mutex mutex_;
  Context context_ = nullptr;
};

}  // namespace prism::cuda
