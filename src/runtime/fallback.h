// Fallback to another device when one runs out of memory or is lost.
//
// A device chosen by Auto is replaced by the next best one, with one warning; from then on every
// handle from Auto refers to the new device. A device chosen by name throws instead.
// PRISM_FALLBACK=0|1 overrides this for all devices.
#pragma once

#include <optional>
#include <utility>

#include "prism/device.h"
#include "prism/error.h"

namespace prism {

// A failed allocation or a lost device, with the device concerned.
class DeviceFailure : public Error {
 public:
  DeviceFailure(const Error& error, const Device& device);
  const Device& device() const { return device_; }

 private:
  Device device_;
};

// Runs work and converts its out-of-memory and device-lost errors to a DeviceFailure.
template <class Work>
decltype(auto) watching(const Device& device, Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (const DeviceFailure&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory && error.code() != ErrorCode::kDeviceLost) throw;
    throw DeviceFailure(error, device);
  }
}

// The user's setting for all devices, from PRISM_FALLBACK. Throws kInvalidArgument if it is neither
// 0 nor 1.
std::optional<bool> fallback_setting();

// Whether work on this device may continue on another one. Never for the native CPU, which is the
// last fallback.
bool may_fall_back(const Device& device);

// Replaces the failed device by the next best one on another card, and warns. Returns false if that
// is not allowed or no device is left; the caller then rethrows the failure.
bool fall_back(const DeviceFailure& failure);

// While one exists, with_fallback() on this thread rethrows failures. For owners of more state than
// one tensor, which replace the device themselves.
class FallbackHeld {
 public:
  FallbackHeld() { ++count_; }
  ~FallbackHeld() { --count_; }
  FallbackHeld(const FallbackHeld&) = delete;
  FallbackHeld& operator=(const FallbackHeld&) = delete;
  static bool any() { return count_ > 0; }

 private:
  static thread_local int count_;
};

// Repeats the work after a device was replaced. The work must call Device::current() each time.
template <class Work>
decltype(auto) with_fallback(Work&& work) {
  // More than any machine has; bounds work that insists on a failed device.
  constexpr int kMostDevices = 16;
  for (int attempt = 0;; ++attempt) {
    try {
      return work();
    } catch (const DeviceFailure& failure) {
      if (attempt == kMostDevices || FallbackHeld::any() || !fall_back(failure)) throw;
    }
  }
}

}  // namespace prism
