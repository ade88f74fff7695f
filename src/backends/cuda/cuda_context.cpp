// Retains and releases the primary context and makes it current.
#include "backends/cuda/cuda_context.h"

namespace prism::cuda {

CudaContext::CudaContext(std::shared_ptr<Api> api, Ordinal ordinal, std::string device)
    : DeviceContext(std::move(device)), api_(std::move(api)), ordinal_(ordinal) {}

CudaContext::~CudaContext() {
  if (context_) api_->context_release(ordinal_);
}

Context CudaContext::get() {
  const std::lock_guard lock(mutex_);
  if (!context_) {
    const Result result = api_->context_retain(&context_, ordinal_);
    if (result != kSuccess) {
      context_ = nullptr;
      throw driver_error(*api_, result, device() + ": making a context");
    }
  }
  return context_;
}

bool CudaContext::exists() {
  const std::lock_guard lock(mutex_);
  return context_ != nullptr;
}

void CudaContext::enter(int*) {
  const Result result = api_->context_push(get());
  if (result != kSuccess) throw driver_error(*api_, result, device() + ": entering its context");
}

void CudaContext::leave(int) {
  Context ignored = nullptr;
  api_->context_pop(&ignored);
}

}  // namespace prism::cuda
