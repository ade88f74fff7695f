// Library search paths, and trial loads in a forked child.
#include "base/system/probe_library.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <fmt/format.h>

#include "base/cache_folder.h"

// Linux only: macOS frameworks abort in a child that is forked without exec.
#ifdef __linux__
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#endif

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCache = "libraries";

void add_folders(std::vector<fs::path>& folders, const char* list) {
  if (!list) return;
  const std::string_view listed = list;
  for (size_t start = 0; start < listed.size();) {
    const size_t end = std::min(listed.find(':', start), listed.size());
    if (end > start) folders.emplace_back(listed.substr(start, end - start));
    start = end + 1;
  }
}

// Changes whenever the file does; empty if there is no such file.
std::string identity(const std::string& file) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (failed) return "";
  const auto bytes = fs::file_size(real, failed);
  if (failed) return "";
  const auto changed = fs::last_write_time(real, failed).time_since_epoch().count();
  return fmt::format("{}|{}|{}", real.string(), bytes, changed);
}

// How many threads are loading libraries, and whether a fork is in progress.
struct Loading {
  std::mutex mutex;
  std::condition_variable changed;
  int threads = 0;
  bool forking = false;
};

Loading& loading() {
  static auto& state = *new Loading;
  return state;
}

thread_local int loads_here = 0;  // LoadingLibraries objects held by this thread

#ifdef __linux__

// Forks while no thread is loading a library. A waiting thread does not count as loading.
pid_t fork_between_loads() {
  Loading& all = loading();
  std::unique_lock lock(all.mutex);
  if (loads_here > 0) --all.threads;
  all.changed.notify_all();
  all.changed.wait(lock, [&] { return all.threads == 0 && !all.forking; });
  all.forking = true;
  lock.unlock();  // the child must find the mutex unlocked
  const pid_t child = fork();
  if (child == 0) {
    all.threads = 0;  // only this thread exists in the child
    all.forking = false;
    return child;
  }
  lock.lock();
  all.forking = false;
  if (loads_here > 0) ++all.threads;
  all.changed.notify_all();
  return child;
}

[[noreturn]] void run_child(int out, const std::string& file, const LibraryTrial& trial) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int silence = open("/dev/null", O_RDWR);
  for (int standard : {0, 1, 2}) dup2(silence, standard);
  for (int sign : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGALRM}) signal(sign, SIG_DFL);
  std::string said;
  try {
    said = trial(file);
  } catch (const std::exception& error) {
    said = error.what();
  }
  said.insert(said.begin(), '!');  // distinguishes an empty answer from no answer
  for (size_t sent = 0; sent < said.size();) {
    const ssize_t now = write(out, said.data() + sent, said.size() - sent);
    if (now <= 0) break;
    sent += static_cast<size_t>(now);
  }
  _exit(0);  // skip destructors: they belong to the parent, and the library's may crash
}

std::string in_child(const std::string& file, const LibraryTrial& trial,
                     std::chrono::milliseconds limit) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return "";
  const pid_t child = fork_between_loads();
  if (child == 0) run_child(pipe_ends[1], file, trial);
  close(pipe_ends[1]);
  std::string said;
  bool late = false;
  const auto end = std::chrono::steady_clock::now() + limit;
  while (child > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd ready{pipe_ends[0], POLLIN, 0};
    late = left.count() <= 0 || poll(&ready, 1, static_cast<int>(left.count())) == 0;
    if (late) break;
    char buffer[512];
    const ssize_t now = read(pipe_ends[0], buffer, sizeof buffer);
    if (now <= 0) break;
    said.append(buffer, static_cast<size_t>(now));
  }
  close(pipe_ends[0]);
  if (child < 0) return "";  // fork failed: accept the library untested
  kill(child, SIGKILL);      // it has answered, or timed out
  int status = 0;
  waitpid(child, &status, 0);
  if (late)
    return fmt::format("{} did not answer within {} ms when it was tried", file, limit.count());
  if (said.empty() && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
    return fmt::format("{} crashed when it was tried ({})", file, strsignal(WTERMSIG(status)));
  if (said.empty()) return fmt::format("{} ended the process when it was tried", file);
  return said.substr(1);
}

#endif

}  // namespace

LoadingLibraries::LoadingLibraries() {
  if (loads_here++ > 0) return;
  Loading& all = loading();
  std::unique_lock lock(all.mutex);
  all.changed.wait(lock, [&] { return !all.forking; });
  ++all.threads;
}

LoadingLibraries::~LoadingLibraries() {
  if (--loads_here > 0) return;
  Loading& all = loading();
  const std::scoped_lock lock(all.mutex);
  --all.threads;
  all.changed.notify_all();
}

std::vector<fs::path> loader_folders() {
  std::vector<fs::path> folders;
  add_folders(folders, std::getenv("LD_LIBRARY_PATH"));
  add_folders(folders, std::getenv("DYLD_LIBRARY_PATH"));
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/etc/ld.so.conf.d", ignored)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (line.starts_with('/')) folders.emplace_back(line);
  }
  for (const char* usual :
       {"/usr/local/lib", "/usr/lib", "/lib", "/usr/lib64", "/lib64", "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/opt/homebrew/lib"})
    folders.emplace_back(usual);
  return folders;
}

std::string find_library(const std::vector<std::string>& names) {
  std::error_code ignored;
  for (const std::string& name : names) {
    if (name.find('/') != std::string::npos) {
      if (fs::is_regular_file(name, ignored)) return name;
      continue;
    }
    for (const fs::path& folder : loader_folders())
      if (fs::is_regular_file(folder / name, ignored)) return (folder / name).string();
  }
  return "";
}

ProbeResult probe_library(const std::string& file, const std::string& what,
                          const LibraryTrial& trial, std::chrono::milliseconds limit) {
  ProbeResult result;
#ifdef __linux__
  const std::string known = identity(file);
  if (known.empty()) {
    result.reason = file + " is not a readable file";
    return result;
  }
  const std::string key = hash_text(what + "|" + known);
  if (const auto kept = read_cached(kCache, key)) {
    result.reason.assign(reinterpret_cast<const char*>(kept->data()), kept->size());
    result.remembered = true;
    if (!result.usable())
      result.reason += fmt::format(" by an earlier run; remove {} to have it tried again",
                                   cache_subfolder(kCache).string());
    return result;
  }
  result.reason = in_child(file, trial, limit);
  write_cached(kCache, key, std::as_bytes(std::span(result.reason)));
#else
  (void)file, (void)what, (void)trial, (void)limit;
#endif
  return result;
}

}  // namespace prism
