// For a backend whose interface does not tell all of a card that another backend may see too.
#pragma once

#include <memory>

#include "runtime/driver.h"

namespace prism {

// Implemented by a DeviceDriver beside its own interface.
class SharesCard {
 public:
  virtual ~SharesCard() = default;
  // Another backend's device of the same card, told once discovery is through: it may know how much
  // memory there is.
  virtual void same_card(const std::shared_ptr<DeviceDriver>& other) = 0;
};

}  // namespace prism
