// Probes an unknown shared library in a child process and caches the result.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace prism {

// The first of the names that exists as a file: a path is used as given, a bare name is searched in
// the loader's folders. Empty when none exists.
std::string find_library(const std::vector<std::string>& names);

// The loader's folders, in order; some may not exist.
std::vector<std::filesystem::path> loader_folders();

// Opens the library and makes the backend's first calls. Returns why it cannot be used; empty when
// it can. Runs in the child: its side effects are lost, and it may crash.
using LibraryTrial = std::function<std::string(const std::string& file)>;

struct ProbeResult {
  std::string reason;       // why the library must not be opened; empty: usable
  bool remembered = false;  // cached by an earlier run of any program
  bool usable() const { return reason.empty(); }
};

// Results are cached by the file's path, size and modification time, under `what` ("webgpu").
// Where no child can be made (run_in_child), every library counts as usable. Call it before the
// backend starts threads: the child has only the calling thread.
ProbeResult probe_library(const std::string& file, const std::string& what,
                          const LibraryTrial& trial,
                          std::chrono::milliseconds limit = std::chrono::seconds(20));

}  // namespace prism
