// A timestamp in a queue, on the device's clock if the interface has one, else on the host's.
#pragma once

#include <chrono>
#include <optional>

#include "runtime/driver.h"

namespace prism {

class TimedEvent : public EventDriver {
 public:
  void wait() final {
    reach();
    using Nanoseconds = std::chrono::duration<double, std::nano>;
    if (!seen_ns_)
      seen_ns_ = Nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  double ms_since(EventDriver& earlier) final {
    return (ns() - static_cast<TimedEvent&>(earlier).ns()) * 1e-6;
  }

 protected:
  virtual void reach() = 0;  // waits for the event
  // Device time at which the event was reached; nullopt for the host's clock. Called once.
  virtual std::optional<double> device_ns() { return std::nullopt; }

 private:
  double ns() {
    wait();
    if (!ns_) ns_ = device_ns().value_or(*seen_ns_);
    return *ns_;
  }
  std::optional<double> seen_ns_, ns_;
};

}  // namespace prism
