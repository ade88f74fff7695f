// A backend over one untrusted library: located by name, probed in a child process, then asked for
// its devices.
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
  std::vector<std::string> names;  // library names
  std::string variable;            // environment variable that names a file instead
  std::string file;                // the file itself, overriding both
  std::string next_step;  // where to get the library; used if devices_of gives no better step
  // Also called in the child process: the library passes if `found` is set, with or without
  // devices.
  std::function<Discovery(const std::string& file)> devices_of;
  std::mutex* alone = nullptr;  // held around devices_of, except in the child process
};

std::unique_ptr<Backend> make_library_backend(LibraryBackendParts parts);

}  // namespace prism
