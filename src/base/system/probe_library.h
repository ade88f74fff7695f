// Trying a shared library nobody knows yet in a child process, so that one which crashes or hangs
// becomes a sentence.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace prism {

// The first of the names that is a file: a path as it is, a bare name in the folders the system's
// loader looks through. Empty when there is none.
std::string find_library(const std::vector<std::string>& names);

// Those folders, in order; some may not be there.
std::vector<std::filesystem::path> loader_folders();

// Opens the library and calls what its backend will call first. Returns why it cannot be used;
// empty when it can. Runs in the child: what it changes is lost, and it may crash.
using LibraryTrial = std::function<std::string(const std::string& file)>;

struct ProbeResult {
  std::string reason;       // why the library is not to be opened; empty: it is fine
  bool remembered = false;  // known from an earlier run of any program
  bool usable() const { return reason.empty(); }
};

// Outcomes are kept in the cache folder for the file's path, size and time of change, under what
// ("webgpu"). Systems without fork() have no child to lose: there every library counts as fine.
// Call it before other threads of the backend start: the child has only the calling one. It begins
// when no other thread holds LoadingLibraries.
ProbeResult probe_library(const std::string& file, const std::string& what,
                          const LibraryTrial& trial,
                          std::chrono::milliseconds limit = std::chrono::seconds(20));

// Held by a thread while it opens libraries beside other threads: a child made in the middle of
// that would have half of a library, with which the system's loader ends it. Not while a child is
// made.
class LoadingLibraries {
 public:
  LoadingLibraries();
  ~LoadingLibraries();
  LoadingLibraries(const LoadingLibraries&) = delete;
  LoadingLibraries& operator=(const LoadingLibraries&) = delete;
};

}  // namespace prism
