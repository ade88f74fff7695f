// Forks between the loads of libraries, and reads the child's texts from a pipe.
#include "base/system/child_run.h"

#include <condition_variable>
#include <mutex>

// Linux only: macOS frameworks abort in a child that is forked without exec.
#ifdef __linux__
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#endif

namespace prism {
namespace {

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

constexpr char kEnd = '\0';  // the last byte of a child whose work returned

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

void send(int out, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = write(out, text.data(), text.size());
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) _exit(1);  // nobody listens
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

[[noreturn]] void run_child(int out, const std::function<void(const Say&)>& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int silence = open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2}) dup2(silence, standard);
  for (const int sign : {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGALRM, SIGINT})
    signal(sign, SIG_DFL);
  // For a library that calls exit(): the remaining handlers belong to the parent and may wait for
  // its threads.
  std::atexit([] { _exit(1); });
  work([out](std::string_view text) { send(out, text); });
  send(out, {&kEnd, 1});
  _exit(0);  // skip destructors: they belong to the parent, and the library's may crash
}

// Reads until the child closes its end. Returns false if it was silent for longer than the limit.
bool read_all(int from, std::chrono::milliseconds limit, std::string& said) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  auto end = now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - now());
    if (left.count() <= 0) return false;
    pollfd ready{from, POLLIN, 0};
    const int found = poll(&ready, 1, static_cast<int>(left.count()));
    if (found < 0 && errno != EINTR) return true;
    if (found <= 0) continue;
    char buffer[512];
    const ssize_t bytes = read(from, buffer, sizeof buffer);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return true;
    said.append(buffer, static_cast<size_t>(bytes));
    end = now() + limit;
  }
}

#endif

}  // namespace

#ifdef __linux__

std::optional<ChildResult> run_in_child(const std::function<void(const Say&)>& work,
                                        std::chrono::milliseconds limit) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const pid_t child = fork_between_loads();
  if (child == 0) {
    try {
      run_child(ends[1], work);
    } catch (...) {
      _exit(1);
    }
  }
  close(ends[1]);
  ChildResult result;
  const bool in_time = child < 0 || read_all(ends[0], limit, result.said);
  close(ends[0]);
  if (child < 0) return std::nullopt;
  kill(child, SIGKILL);  // it has ended, or is late
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!result.said.empty() && result.said.back() == kEnd)
    result.said.pop_back();
  else if (!in_time)
    result.failure = fmt::format("did not answer within {} ms when it was tried", limit.count());
  else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
    result.failure = fmt::format("crashed when it was tried ({})", strsignal(WTERMSIG(status)));
  else
    result.failure = "ended the process when it was tried";
  return result;
}

#else

std::optional<ChildResult> run_in_child(const std::function<void(const Say&)>&,
                                        std::chrono::milliseconds) {
  return std::nullopt;
}

#endif

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

}  // namespace prism
