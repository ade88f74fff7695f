// Makes a device current in a thread, as the drivers require before most calls.
#pragma once

#include <string>
#include <utility>

#include "backends/gpu_runtime/gpu_api.h"

namespace prism::gpu {

// The context that owns a device's memory, streams and programs.
class DeviceContext {
 public:
  explicit DeviceContext(std::string device) : device_(std::move(device)) {}
  virtual ~DeviceContext() = default;
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  virtual const Api& api() const = 0;
  const std::string& device() const { return device_; }  // "cuda:0 (NVIDIA H200)", for messages
  // Makes the context current in this thread; *before receives the state that leave() restores.
  // Throws on failure.
  virtual void enter(int* before) = 0;
  virtual void leave(int before) = 0;

 private:
  std::string device_;
};

// Makes the context current in this thread for its lifetime, then restores the previous one.
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

// The non-throwing form: calls body(api) if the context can be made current.
template <class Body>
void quietly(DeviceContext& context, Body&& body) noexcept {
  try {
    const Current current(context);
    body(context.api());
  } catch (...) {
    // A lost device frees its memory itself, and a destructor cannot report it.
  }
}

}  // namespace prism::gpu
