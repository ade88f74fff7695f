// A lock between backends that reach the same drivers: discovery runs one thread per backend.
#pragma once

#include <mutex>

namespace prism {

// Held during discovery by backends that reach the same drivers through different libraries: some
// drivers cannot be started by two threads at once.
inline std::mutex& driver_start_mutex() {
  static auto* const mutex = new std::mutex;  // drivers may still run threads at program exit
  return *mutex;
}

}  // namespace prism
