// Folder notifications through inotify on Linux.
#include "base/system/folder_watch.h"

#include "prism/error.h"

#ifdef __linux__
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#endif

namespace prism {

#ifdef __linux__

FolderWatch::FolderWatch(const std::vector<std::string>& folders)
    : file_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  const auto fail = [&](const std::string& what) {
    const std::string reason = std::strerror(errno);
    if (file_ >= 0) close(file_);
    throw Error(ErrorCode::kIo, what + ": " + reason);
  };
  if (file_ < 0) fail("watching for changes");
  for (const std::string& folder : folders) {
    const uint32_t events = IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                            IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB | IN_ONLYDIR;
    if (inotify_add_watch(file_, folder.c_str(), events) >= 0) continue;
    if (errno == ENOSPC)
      fail("watching " + std::to_string(folders.size()) +
           " folders is more than fs.inotify.max_user_watches allows; raise it with sysctl");
    if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) fail("watching " + folder);
  }
}

FolderWatch::~FolderWatch() { close(file_); }

// Reads what there is after waiting; false if nothing came.
bool FolderWatch::take_events(int milliseconds) {
  pollfd wanted{.fd = file_, .events = POLLIN, .revents = 0};
  if (poll(&wanted, 1, milliseconds) <= 0) return false;
  alignas(inotify_event) char events[16384];
  while (read(file_, events, sizeof events) > 0) {
  }
  return true;
}

bool FolderWatch::wait(const std::function<bool()>& keep_going) {
  constexpr int kTurnMs = 200;
  constexpr auto kLongest = std::chrono::seconds(3);
  while (!take_events(kTurnMs))
    if (!keep_going()) return false;
  const auto first = std::chrono::steady_clock::now();
  while (take_events(kTurnMs) && std::chrono::steady_clock::now() - first < kLongest)
    if (!keep_going()) return false;
  return keep_going();
}

#else

FolderWatch::FolderWatch(const std::vector<std::string>&) {
  throw Error(ErrorCode::kNotSupported,
              "watching folders is only possible on Linux; run prism index again instead");
}
FolderWatch::~FolderWatch() = default;
bool FolderWatch::take_events(int) { return false; }
bool FolderWatch::wait(const std::function<bool()>&) { return false; }

#endif

}  // namespace prism
