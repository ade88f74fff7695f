// A device's late failure, kept until somebody can be told. Safe to use from a driver's threads.
#pragma once

#include <mutex>
#include <string>
#include <utility>

#include "prism/error.h"

namespace prism {

class KeptFailure {
 public:
  // The first since it was last told: it is the cause of those that follow.
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
  // Throws what was kept, once; a loss is thrown for ever. device: "webgpu:0 (name)".
  void tell(const std::string& device) {
    const std::lock_guard guard(lock_);
    if (!lost_.empty())
      throw Error(ErrorCode::kDeviceLost, device + ": the device is lost: " + lost_);
    if (!message_.empty()) throw Error(code_, device + ": " + std::exchange(message_, ""));
  }
  // Takes the message instead; empty when there is none. A loss stays.
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
