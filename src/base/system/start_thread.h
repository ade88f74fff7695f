// Starts a thread that a part of the program cannot do without.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "prism/error.h"

namespace prism {

// `what` begins the message. Throws kOutOfMemory if the system refuses, as it does where the number
// of processes is limited.
template <class Function>
std::thread start_thread(const std::string& what, Function&& function) {
  try {
    return std::thread(std::forward<Function>(function));
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kOutOfMemory,
                what + ": a thread cannot be started (" + error.code().message() +
                    "); is the number of processes limited (ulimit -u, pids.max)?");
  }
}

}  // namespace prism
