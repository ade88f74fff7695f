// A point of a queue on a clock: the device's where the interface tells its times, else the host's.
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
  virtual void reach() = 0;  // waits for it
  // When it was reached, by the device's clock; none for the host's. Asked once.
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
