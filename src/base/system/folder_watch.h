// Waits for changes in folders.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace prism {

class FolderWatch {
 public:
  // Watches these folders, not those inside of them. Throws kNotSupported on a system without
  // notifications, and kIo if there are too many folders for the system's limit.
  explicit FolderWatch(const std::vector<std::string>& folders);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // Waits until something changes in a folder and nothing more happens for a moment (but at most 3
  // seconds). Returns false if keep_going, which is asked several times a second, returns false.
  bool wait(const std::function<bool()>& keep_going);

 private:
  bool take_events(int milliseconds);
  int file_ = -1;
};

}  // namespace prism
