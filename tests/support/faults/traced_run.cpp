// A tracer whose program stops only at the system calls that a seccomp filter selects.
#include "support/faults/traced_run.h"

#include <stdexcept>

#ifdef __linux__

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <map>

namespace prism::test {
namespace {

constexpr int kNoTracing = 125;  // exit status of a child that could not prepare itself

// Calls that change files or their locks. Reads are left out: a program that is killed at one
// leaves the same files as at the next change.
constexpr int kChanges[] = {
#ifdef SYS_creat
    SYS_creat,    SYS_rename,    SYS_unlink,   SYS_mkdir,          SYS_rmdir,     SYS_link,
    SYS_symlink,  SYS_chmod,
#endif
    SYS_openat2,  SYS_write,     SYS_writev,   SYS_pwrite64,       SYS_pwritev,   SYS_sendfile,
    SYS_fsync,    SYS_fdatasync, SYS_msync,    SYS_truncate,       SYS_ftruncate, SYS_fallocate,
    SYS_renameat, SYS_renameat2, SYS_unlinkat, SYS_mkdirat,        SYS_linkat,    SYS_symlinkat,
    SYS_fchmod,   SYS_fchmodat,  SYS_flock,    SYS_copy_file_range};
constexpr unsigned kOpensToChange = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC;

// The filter: stops at kChanges, and at open and openat with flags that change files.
std::vector<sock_filter> filter() {
  std::vector<sock_filter> steps;
  const auto add = [&](unsigned code, unsigned value, unsigned char yes = 0, unsigned char no = 0) {
    steps.push_back({static_cast<unsigned short>(code), yes, no, value});
  };
  const auto stop = [&] { add(BPF_RET | BPF_K, SECCOMP_RET_TRACE); };
  const auto allow = [&] { add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW); };
  const auto stop_if_open = [&](int call, size_t flags) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 4);
    add(BPF_LD | BPF_W | BPF_ABS,
        static_cast<unsigned>(offsetof(seccomp_data, args) + flags * sizeof(uint64_t)));
    add(BPF_JMP | BPF_JSET | BPF_K, kOpensToChange, 0, 1);
    stop();
    allow();
  };
  add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const int call : kChanges) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1);
    stop();
  }
#ifdef SYS_open
  stop_if_open(SYS_open, 1);
#endif
  stop_if_open(SYS_openat, 2);
  allow();
  return steps;
}

// In the child: waits until it is traced, then becomes the program.
[[noreturn]] void become(char* const* words, int input, int output, int traced,
                         const sock_fprog& program) {
  char go = 0;
  if (read(traced, &go, 1) != 1) _exit(kNoTracing);
  dup2(input, 0);
  dup2(output, 1);
  dup2(output, 2);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(kNoTracing);
  execvp(words[0], words);
  _exit(kNoTracing);
}

bool is_thread_of(pid_t thread, pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process) + "/task/";
  return access((folder + std::to_string(thread)).c_str(), F_OK) == 0;
}

// Lets the child and all that it starts run, until every one has ended.
TracedRun follow(pid_t child, int64_t kill_at) {
  TracedRun run;
  std::map<pid_t, bool> is_own;  // threads of the program: true; of its children: false
  int status = 0;
  pid_t thread = 0;
  while ((thread = waitpid(-1, &status, __WALL | __WNOTHREAD)) > 0 || errno == EINTR) {
    if (thread <= 0) continue;
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      if (thread == child)
        run.result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      continue;
    }
    const int event = status >> 16;
    if (event == PTRACE_EVENT_SECCOMP) {
      const auto [known, is_new] = is_own.try_emplace(thread, false);
      if (is_new) known->second = is_thread_of(thread, child);
      if (known->second && ++run.calls == kill_at) {
        kill(child, SIGKILL);
        continue;
      }
    }
    const int signal = event == 0 ? WSTOPSIG(status) : 0;
    ptrace(PTRACE_CONT, thread, nullptr, static_cast<long>(signal));
  }
  return run;
}

// Starts the words; returns the reason if they cannot be traced.
std::string trace(const std::vector<std::string>& words, const std::string& input,
                  const std::string& output, int64_t kill_at, TracedRun& run) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::vector<sock_filter> steps = filter();
  const sock_fprog program{static_cast<unsigned short>(steps.size()), steps.data()};
  const int in = open(input.c_str(), O_RDONLY | O_CLOEXEC);
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  int traced[2];
  if (in < 0 || out < 0 || pipe2(traced, O_CLOEXEC) != 0)
    return std::string("files of the traced program: ") + std::strerror(errno);
  const pid_t child = fork();
  if (child == 0) {
    close(traced[1]);
    become(argv.data(), in, out, traced[0], program);
  }
  for (const int file : {in, out, traced[0]}) close(file);
  std::string problem;
  const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE |
                       PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
  if (child < 0)
    problem = std::string("fork: ") + std::strerror(errno);
  else if (ptrace(PTRACE_SEIZE, child, nullptr, options) != 0)
    problem = std::string("ptrace: ") + std::strerror(errno);
  else if (write(traced[1], "", 1) != 1)
    problem = std::string("pipe: ") + std::strerror(errno);
  close(traced[1]);  // a child that is not traced ends now
  if (child < 0) return problem;
  run = follow(child, kill_at);
  if (problem.empty() && run.result.status == kNoTracing)
    problem = "the program cannot be started under a seccomp filter";
  return problem;
}

}  // namespace

std::string tracing_problem() {
  static const std::string problem = [] {
    const TemporaryFolder folder;
    TracedRun run;
    const std::string found = trace({"sh", "-c", "echo >\"$0\"", folder / "made"}, "/dev/null",
                                    folder / "output", 0, run);
    if (!found.empty()) return found;
    return run.calls > 0 ? std::string() : "no system call was seen";
  }();
  return problem;
}

TracedRun run_traced(const std::vector<std::string>& words, const std::string& input,
                     int64_t kill_at) {
  const TemporaryFolder folder;
  TracedRun run;
  const std::string problem = trace(words, input, folder / "output", kill_at, run);
  if (!problem.empty()) throw std::runtime_error(words.at(0) + ": " + problem);
  run.result.output = read_file(folder / "output");
  return run;
}

}  // namespace prism::test

#else

namespace prism::test {

std::string tracing_problem() { return "needs Linux"; }

TracedRun run_traced(const std::vector<std::string>& words, const std::string&, int64_t) {
  throw std::runtime_error(words.at(0) + ": " + tracing_problem());
}

}  // namespace prism::test

#endif
