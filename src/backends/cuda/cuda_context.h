// A device's primary context, made on first use and shared by all that lives in it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/cuda_api.h"

namespace prism::cuda {

// The primary context is the one other CUDA libraries of the process use too. It takes memory on
// the card and a tenth of a second to make, so a device that is only listed has none.
class DeviceContext {
 public:
  DeviceContext(std::shared_ptr<Api> api, Ordinal ordinal, std::string device);
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  const Api& api() const { return *api_; }
  const std::string& device() const { return device_; }  // "cuda:0 (NVIDIA H200)", for messages
  Context get();                                         // throws when it cannot be made
  bool exists();                                         // whether it was made

 private:
  std::shared_ptr<Api> api_;
  Ordinal ordinal_;
  std::string device_;
  std::mutex mutex_;
  Context context_ = nullptr;
};

// Makes the context current in this thread while it lives; what was current before comes back.
class Current {
 public:
  explicit Current(DeviceContext& context);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Api& api_;
};

// The same where nothing may be thrown: calls body(api) if the context can be made current.
template <class Body>
void quietly(DeviceContext& context, Body&& body) noexcept {
  try {
    const Current current(context);
    body(context.api());
  } catch (...) {
    // A lost device frees by itself, and there is nobody to tell.
  }
}

}  // namespace prism::cuda
