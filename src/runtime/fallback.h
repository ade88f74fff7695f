// What happens when a device runs out of memory or is lost: another takes its place, or the error
// stands.
//
// A device chosen by Auto is given up for the next best one, with one warning: from then on every
// handle that Auto gave means that other device. One chosen by name raises. PRISM_FALLBACK=0|1 says
// it for all devices.
#pragma once

#include <utility>

#include "prism/device.h"
#include "prism/error.h"

namespace prism {

// An allocation refused or a device lost, and whose it was.
class DeviceFailure : public Error {
 public:
  DeviceFailure(const Error& error, const Device& device);
  const Device& device() const { return device_; }

 private:
  Device device_;
};

// Does what can fail on this device only: out of memory and lost become a DeviceFailure.
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

// Whether work on this device goes on elsewhere when it fails. Never that of the native CPU: there
// is nothing behind it.
bool may_fall_back(const Device& device);

// Gives the failed device up for the next best one that is not on the same card, and warns. False
// where it may not, or nothing is left: then the failure is to be thrown on.
bool fall_back(const DeviceFailure& failure);

// While one lives, its thread's with_fallback() hands failures on: its holder has more to put in
// order than one tensor, and gives the device up itself.
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

// Does the work again where a device was given up for another one. The work asks Device::current()
// anew each time.
template <class Work>
decltype(auto) with_fallback(Work&& work) {
  // More than the devices of any machine: an end for work that keeps to a device that failed.
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
