// Any device, with a failure on order: how tests lose a device whose driver cannot be told to fail.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism::test {

// What is to go wrong. Numbers count down; 0: nothing.
struct Faults {
  int lose_at_submit = 0;  // the n-th launch, replay or copy from now is not done, and the device
                           // is lost: told at the next wait, and by every call after it
  int full_at_allocation = 0;  // the n-th allocation from now and all after it find no memory
  bool is_lost = false, is_full = false;
};

// The driver behind another one, which fails as the faults say; they may be changed at any time.
std::shared_ptr<DeviceDriver> failing_device(std::shared_ptr<DeviceDriver> driver,
                                             std::shared_ptr<Faults> faults);

}  // namespace prism::test
