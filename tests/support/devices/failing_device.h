// failing_device: wraps any driver and injects failures, to test the loss of a device.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism::test {

// The faults to inject. Counters count down; 0: no fault.
struct Faults {
  int lose_at_submit = 0;  // the n-th launch, replay or copy from now is dropped and the device is
                           // lost: reported by the next wait and every call after it
  int full_at_allocation = 0;  // the n-th allocation from now and all later ones fail
  bool is_lost = false, is_full = false;
};

// Wraps a driver and injects the faults, which may be changed at any time.
std::shared_ptr<DeviceDriver> failing_device(std::shared_ptr<DeviceDriver> driver,
                                             std::shared_ptr<Faults> faults);

}  // namespace prism::test
