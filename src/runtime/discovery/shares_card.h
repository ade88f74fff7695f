// Interface for devices that need facts about their card from another backend.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

// Implemented by a DeviceDriver beside its own interface.
class SharesCard {
 public:
  virtual ~SharesCard() = default;
  // Passes another backend's device of the same card once discovery is complete. That device may
  // know how much memory there is.
  virtual void same_card(const std::shared_ptr<DeviceDriver>& other) = 0;
};

}  // namespace prism
