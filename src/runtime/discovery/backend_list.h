// The list of backends in this build, as the registry sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// Factories that the backend list passes to the registry (src/backends/backends.cpp).
struct BackendMaker {
  const char* name;  // the backend's name, known without creating it: creation may probe libraries
  std::unique_ptr<Backend> (*make)();
};
std::vector<BackendMaker> backend_makers();  // defined by src/backends/backends.cpp
// Folders, other than library folders, in which drivers register themselves. A change there may
// mean that the set of devices changed. Also defined in src/backends/backends.cpp.
std::vector<std::string> driver_folders();

}  // namespace prism
