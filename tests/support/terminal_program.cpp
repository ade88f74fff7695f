// Starts a program on a pseudo-terminal and reads its screen.
#include "support/terminal_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace prism::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool has_ended(pid_t child) {
  siginfo_t info = {};
  return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid == child;
}

}  // namespace

TerminalProgram::TerminalProgram(const std::vector<std::string>& words,
                                 const std::vector<std::string>& variables) {
  terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0)
    throw std::runtime_error("the system gives no pseudo-terminal");
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  ioctl(terminal_, TIOCSWINSZ, &size);
  const std::string name = ptsname(terminal_);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  child_ = fork();
  if (child_ < 0) throw std::runtime_error("the system gives no process");
  if (child_ == 0) {
    setsid();
    const int mine = open(name.c_str(), O_RDWR);  // becomes the controlling terminal
    for (int stream = 0; stream < 3; ++stream) dup2(mine, stream);
    for (const std::string& each : variables) putenv(const_cast<char*>(each.c_str()));
    setenv("TERM", "xterm", 1);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
}

TerminalProgram::~TerminalProgram() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

void TerminalProgram::type(const std::string& keys) {
  if (write(terminal_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size()))
    throw std::runtime_error("the terminal takes no keys");
}

bool TerminalProgram::read_some(double seconds) {
  pollfd wanted{.fd = terminal_, .events = POLLIN, .revents = 0};
  if (poll(&wanted, 1, static_cast<int>(seconds * 1000)) <= 0) return false;
  char block[4096];
  const ssize_t got = read(terminal_, block, sizeof block);
  if (got <= 0) return false;
  screen_.append(block, static_cast<size_t>(got));
  return true;
}

bool TerminalProgram::sees(const std::string& text, double seconds) {
  const auto start = Clock::now();
  for (;;) {
    if (const size_t at = screen_.find(text, seen_); at != std::string::npos) {
      seen_ = at + text.size();
      return true;
    }
    if (seconds_since(start) > seconds) return false;
    if (!read_some(0.1) && has_ended(child_) && !read_some(0))
      return screen_.find(text, seen_) != std::string::npos;
  }
}

int TerminalProgram::wait(double seconds) {
  const auto start = Clock::now();
  while (seconds_since(start) < seconds) {
    read_some(0.05);
    int status = 0;
    if (waitpid(child_, &status, WNOHANG) != child_) continue;
    child_ = -1;
    while (read_some(0)) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return -1;
}

}  // namespace prism::test
