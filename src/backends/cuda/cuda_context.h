// A device's primary context, made on first use and shared by all that lives in it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/cuda_api.h"
#include "backends/gpu_runtime/gpu_context.h"

namespace prism::cuda {

using gpu::Current;
using gpu::quietly;

// The primary context is the one other CUDA libraries of the process use too. It takes memory on
// the card and a tenth of a second to make, so a device that is only listed has none.
class CudaContext final : public gpu::DeviceContext {
 public:
  CudaContext(std::shared_ptr<Api> api, Ordinal ordinal, std::string device);
  ~CudaContext() override;

  const Api& api() const override { return *api_; }
  void enter(int* before) override;
  void leave(int before) override;
  bool exists();  // whether it was made

 private:
  Context get();  // throws when it cannot be made

  std::shared_ptr<Api> api_;
  Ordinal ordinal_;
  std::mutex mutex_;
  Context context_ = nullptr;
};

}  // namespace prism::cuda
