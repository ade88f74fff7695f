// A deferred device failure, kept until it can be thrown. Safe to use from driver threads.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "prism/error.h"

namespace prism {

class KeptFailure {
 public:
  // Keeps only the first failure since the last tell(): it causes those that follow.
  void keep(ErrorCode code, const std::string& message) {
    const std::lock_guard guard(lock_);
    if (message_.empty()) code_ = code, message_ = message;
  }
  void keep_lost(const std::string& message) {
    const std::lock_guard guard(lock_);
    lost_ = message.empty() ? "no reason is given" : message;
  }
  bool any() const {
    const std::lock_guard guard(lock_);
    return !lost_.empty() || !message_.empty();
  }
  // Throws the kept failure once; a device loss is thrown every time. device: "webgpu:0 (name)".
  void tell(const std::string& device) {
    const std::lock_guard guard(lock_);
    if (!lost_.empty())
      throw Error(ErrorCode::kDeviceLost, device + ": the device is lost: " + lost_);
    if (!message_.empty()) throw Error(code_, device + ": " + std::exchange(message_, ""));
  }
  // Returns and clears the message, or returns an empty string. A loss stays.
  std::string take() {
    const std::lock_guard guard(lock_);
    return lost_.empty() ? std::exchange(message_, "") : "";
  }

 private:
  mutable std::mutex lock_;
  std::string message_, lost_;
  ErrorCode code_ = ErrorCode::kDriver;
};

}  // namespace prism
