// Runs code of unknown libraries in a forked child, so that a crash or hang becomes an error
// message.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace prism {

// Sends a text to the parent.
using Say = std::function<void(std::string_view text)>;

struct ChildResult {
  std::string said;  // all texts, joined
  // What ended the work early: "crashed when it was tried (Segmentation fault)", "did not answer
  // within 100 ms when it was tried", "ended the process when it was tried"; empty if the work
  // returned.
  std::string failure;
};

// Runs the work in a child, silently: its side effects are lost, and it may crash. limit: the
// longest time between two texts. The child has only the calling thread. The fork waits until no
// other thread holds LoadingLibraries. Returns nothing if no child can be made: always on systems
// other than Linux, where forked processes cannot use drivers.
std::optional<ChildResult> run_in_child(const std::function<void(const Say&)>& work,
                                        std::chrono::milliseconds limit);

// Held by a thread while it opens libraries concurrently with other threads. A fork in the middle
// of dlopen would leave the child with a half-loaded library, so forks and loads exclude each
// other.
class LoadingLibraries {
 public:
  LoadingLibraries();
  ~LoadingLibraries();
  LoadingLibraries(const LoadingLibraries&) = delete;
  LoadingLibraries& operator=(const LoadingLibraries&) = delete;
};

}  // namespace prism
