// Pipes to child processes: vfork and execve on POSIX systems, popen on Windows.
#include "base/system/process.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "prism/error.h"

#ifndef _WIN32
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace prism {
namespace {

enum class ErrorOutput { joined, dropped };
using Variables = std::vector<std::pair<std::string, std::string>>;

[[noreturn]] void fail_to_start(const std::string& program, const char* reason) {
  throw Error(ErrorCode::kIo, fmt::format("starting {}: {}", program, reason));
}

#ifdef _WIN32

std::string quoted(const std::string& word) {
  return "\"" + word + "\"";  // Windows file names contain no quotes
}

// One running program. On Windows it cannot be ended early through its pipe.
class Child {
 public:
  Child(const std::vector<std::string>& words, ErrorOutput errors, const Variables& = {}) {
    std::string command;
    for (const std::string& word : words) command += quoted(word) + " ";
    command += errors == ErrorOutput::joined ? "2>&1" : "2>NUL";
    pipe_ = _popen(("\"" + command + "\"").c_str(), "rb");  // cmd strips the outer quotes
    if (!pipe_) fail_to_start(words.front(), "the system started no process");
  }
  ~Child() {
    if (pipe_) _pclose(pipe_);
  }
  size_t read(std::span<std::byte> to) { return std::fread(to.data(), 1, to.size(), pipe_); }
  void end() {}
  int wait() { return _pclose(std::exchange(pipe_, nullptr)); }

 private:
  FILE* pipe_ = nullptr;
};

#else

// A file descriptor, closed by the destructor.
struct Descriptor {
  int number = -1;
  ~Descriptor() { reset(); }
  void reset() {
    if (number >= 0) close(number);
    number = -1;
  }
};

// This process's environment with some variables replaced, in execve's format.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const auto& [name, value] : variables) own_.push_back(name + "=" + value);
    for (std::string& each : own_) list_.push_back(each.data());
    for (char** each = environ; *each; ++each)
      if (std::ranges::none_of(variables, [&](const auto& variable) {
            return std::string_view(*each).starts_with(variable.first + "=");
          }))
        list_.push_back(*each);
    list_.push_back(nullptr);
  }
  char* const* list() const { return list_.data(); }

 private:
  std::vector<std::string> own_;
  std::vector<char*> list_;
};

// One running program; the destructor ends it and waits for it.
class Child {
 public:
  Child(const std::vector<std::string>& words, ErrorOutput errors,
        const Variables& variables = {}) {
    const std::string program = find_program(words.front());
    if (program.empty()) {
      status_ = 127;
      return;
    }
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    Descriptor silence{open("/dev/null", O_RDWR | O_CLOEXEC)};
    int ends[2];
    if (silence.number < 0 || pipe(ends) != 0) fail_to_start(program, std::strerror(errno));
    out_.number = ends[0];
    Descriptor write_end{ends[1]};
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    const int error_to = errors == ErrorOutput::joined ? write_end.number : silence.number;
    const Environment environment(variables);
    start(program, arguments.data(), environment.list(), silence.number, write_end.number,
          error_to);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns 0 at the end of the output.
  size_t read(std::span<std::byte> to) {
    if (out_.number < 0) return 0;
    ssize_t bytes = 0;
    do {
      bytes = ::read(out_.number, to.data(), to.size());
    } while (bytes < 0 && errno == EINTR);
    return bytes > 0 ? static_cast<size_t>(bytes) : 0;
  }

  // Ends and waits for the program; one that ignores SIGTERM is killed after two seconds.
  void end() {
    out_.reset();
    if (process_ <= 0) return;
    kill(process_, SIGTERM);
    for (int look = 0; look < 200 && process_ > 0; ++look) {
      collect(WNOHANG);
      if (process_ > 0) usleep(10000);
    }
    if (process_ > 0) kill(process_, SIGKILL);
    wait();
  }

  int wait() {
    out_.reset();
    while (process_ > 0) collect(0);
    return status_;
  }

 private:
  // Takes the exit status if the program has ended.
  void collect(int options) {
    int status = 0;
    const pid_t ended = waitpid(process_, &status, options);
    if (ended == 0 || (ended < 0 && errno == EINTR)) return;
    process_ = 0;
    status_ = ended > 0 && WIFEXITED(status)     ? WEXITSTATUS(status)
              : ended > 0 && WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                 : 1;
  }

  // Uses vfork: fork would copy locks that other threads hold, for example while loading a library,
  // and the child could wait for them forever. The child shares this memory until execve, so it
  // changes only its own descriptors and settings.
  void start(const std::string& program, char* const* arguments, char* const* environment, int in,
             int out, int error) {
    const char* const path = program.c_str();
    const pid_t parent = getpid();
    const pid_t child = vfork();
    if (child < 0) fail_to_start(program, std::strerror(errno));
    if (child == 0) {
#ifdef __linux__
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(126);  // the parent has already ended
#else
      (void)parent;
#endif
      if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(error, 2) < 0 || chdir("/") != 0) _exit(126);
      execve(path, arguments, environment);
      _exit(127);
    }
    process_ = child;
  }

  Descriptor out_;
  pid_t process_ = 0;
  int status_ = 0;
};

#endif

}  // namespace

#ifdef _WIN32
std::string find_program(const std::string& name) { return name; }
#else
std::string find_program(const std::string& name) {
  const auto can_run = [](const std::string& path) {
    std::error_code failed;
    return access(path.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(path, failed);
  };
  if (name.find('/') != std::string::npos)
    return name.front() == '/' && can_run(name) ? name : std::string();
  const char* value = std::getenv("PATH");
  const std::string_view folders = value ? value : "/usr/local/bin:/usr/bin:/bin";
  for (size_t start = 0; start < folders.size();) {
    const size_t end = std::min(folders.find(':', start), folders.size());
    const std::string_view folder = folders.substr(start, end - start);
    start = end + 1;
    if (!folder.starts_with('/')) continue;  // "", "." and "bin" mean the current folder
    if (std::string path = fmt::format("{}/{}", folder, name); can_run(path)) return path;
  }
  return {};
}
#endif

int run_process(const std::vector<std::string>& words,
                const std::function<void(const std::string&)>& line, const Variables& variables) {
  Child child(words, ErrorOutput::joined, variables);
  std::string text;
  const auto hand_over = [&] {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (line && !text.empty()) line(text);
    text.clear();
  };
  std::vector<std::byte> piece(1 << 12);
  while (const size_t bytes = child.read(piece)) {
    for (const std::byte byte : std::span(piece).first(bytes)) {
      if (static_cast<char>(byte) == '\n')
        hand_over();
      else
        text += static_cast<char>(byte);
    }
  }
  hand_over();
  return child.wait();
}

int read_process(const std::vector<std::string>& words,
                 const std::function<bool(std::span<const std::byte>)>& sink) {
  Child child(words, ErrorOutput::dropped);
  std::vector<std::byte> piece(1 << 16);
  while (const size_t bytes = child.read(piece)) {
    if (!sink(std::span(piece).first(bytes))) {
      child.end();
      break;
    }
  }
  return child.wait();
}

}  // namespace prism
