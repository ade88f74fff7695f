// Backends look for devices at the same time, each on a thread of its own; this keeps those apart
// that reach the same drivers.
#pragma once

#include <mutex>

namespace prism {

// Held by a backend while it asks for devices where another one reaches the same drivers through
// another library: not every driver may be started by two threads at once.
inline std::mutex& driver_start_mutex() {
  static auto* const mutex = new std::mutex;  // drivers may still use threads when the program ends
  return *mutex;
}

}  // namespace prism
