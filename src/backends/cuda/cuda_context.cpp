// Retaining, releasing and making current.
#include "backends/cuda/cuda_context.h"

namespace prism::cuda {

DeviceContext::DeviceContext(std::shared_ptr<Api> api, Ordinal ordinal, std::string device)
    : api_(std::move(api)), ordinal_(ordinal), device_(std::move(device)) {}

DeviceContext::~DeviceContext() {
  if (context_) api_->context_release(ordinal_);
}

Context DeviceContext::get() {
  const std::lock_guard lock(mutex_);
  if (!context_) {
    const Result result = api_->context_retain(&context_, ordinal_);
    if (result != kSuccess) {
      context_ = nullptr;
      throw driver_error(*api_, result, device_ + ": making a context");
    }
  }
  return context_;
}

bool DeviceContext::exists() {
  const std::lock_guard lock(mutex_);
  return context_ != nullptr;
}

Current::Current(DeviceContext& context) : api_(context.api()) {
  const Result result = api_.context_push(context.get());
  if (result != kSuccess)
    throw driver_error(api_, result, context.device() + ": entering its context");
}

Current::~Current() {
  Context ignored = nullptr;
  api_.context_pop(&ignored);
}

}  // namespace prism::cuda
