// A backend over one library that may be anything: looked for by its names, tried in a child
// process, and only then asked for its devices.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/system/probe_library.h"
#include "runtime/driver.h"

namespace prism {

struct LibraryBackendParts {
  std::string name, label;         // "webgpu", "WebGPU"
  std::vector<std::string> names;  // of the library
  std::string variable;            // the environment's, which names a file in their place
  std::string file;                // the file itself, instead of both
  std::string next_step;           // where to get one; for want of a better from devices_of
  // Tried in the child too: a library is sound when `found` is told, with devices or without.
  std::function<Discovery(const std::string& file)> devices_of;
  std::mutex* alone = nullptr;  // held while it is asked for its devices, but not in the child
};

std::unique_ptr<Backend> make_library_backend(LibraryBackendParts parts);

}  // namespace prism
