// A device made current in a thread, as the drivers want it before any call that touches it.
#pragma once

#include <string>
#include <utility>

#include "backends/gpu_runtime/gpu_api.h"

namespace prism::gpu {

// What a device's memory, streams and programs live in.
class DeviceContext {
 public:
  explicit DeviceContext(std::string device) : device_(std::move(device)) {}
  virtual ~DeviceContext() = default;
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  virtual const Api& api() const = 0;
  const std::string& device() const { return device_; }  // "cuda:0 (NVIDIA H200)", for messages
  // Makes it current in this thread; *before takes what leave() needs to undo it. Throws when it
  // cannot be done.
  virtual void enter(int* before) = 0;
  virtual void leave(int before) = 0;

 private:
  std::string device_;
};

// Makes the context current in this thread while it lives; what was current before comes back.
class Current {
 public:
  explicit Current(DeviceContext& context) : context_(context) { context_.enter(&before_); }
  ~Current() { context_.leave(before_); }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  DeviceContext& context_;
  int before_ = 0;
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

}  // namespace prism::gpu
