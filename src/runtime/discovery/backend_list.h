// The list of backends in this build, as the registry sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// The backend list hands its makers to the registry (src/backends/backends.cpp).
struct BackendMaker {
  const char* name;  // of the backend, without making it: that may try libraries
  std::unique_ptr<Backend> (*make)();
};
std::vector<BackendMaker> backend_makers();  // defined by src/backends/backends.cpp
// Folders other than those of libraries in which drivers announce themselves: a change there may
// mean other devices. Defined beside it.
std::vector<std::string> driver_folders();

}  // namespace prism
