// A signal handler and a terminate handler; both call only what is safe in a signal handler.
#include "cli/fatal_errors.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "base/system/mapped_file.h"
#include "base/system/output_file.h"
#include "cli/command_line.h"

#ifndef _WIN32
#include <unistd.h>
#endif

namespace prism::cli {
namespace {

constexpr std::string_view kOutOfMemory =
    "\nerror: out of memory: the system refused an allocation; a shorter context (--context), a "
    "smaller model or fewer other programs leave more\n";

void print(std::string_view text) noexcept {
#ifdef _WIN32
  std::fwrite(text.data(), 1, text.size(), stderr);
#else
  while (!text.empty()) {
    const ssize_t printed = write(STDERR_FILENO, text.data(), text.size());
    if (printed <= 0) return;
    text.remove_prefix(static_cast<size_t>(printed));
  }
#endif
}

thread_local bool has_no_memory = false;  // an allocation of this thread failed

void on_no_memory() {
  has_no_memory = true;
  throw std::bad_alloc();
}

[[noreturn]] void on_terminate() noexcept {
  remove_temporary_files();
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
    // In a noexcept function the exception is not caught, and its type is not known.
    if (has_no_memory && std::uncaught_exceptions() > 0) throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    std::_Exit(report_out_of_memory());
  } catch (...) {
  }
  std::abort();
}

#ifndef _WIN32

std::atomic_flag is_reported = ATOMIC_FLAG_INIT;

// Whoever named the file, the terminal must not obey it: controls become question marks, also those
// of two bytes (0xc2 and 0x80 to 0x9f).
void print_path(const char* path) noexcept {
  for (unsigned char before = 0; *path != '\0'; ++path) {
    const auto byte = static_cast<unsigned char>(*path);
    const bool is_control =
        byte < 0x20 || byte == 0x7f || (before == 0xc2 && byte >= 0x80 && byte < 0xa0);
    print({is_control ? "?" : path, 1});
    before = byte;
  }
}

void on_bus_error(int, siginfo_t* info, void*) {
  const bool is_access = info->si_code == BUS_ADRERR;  // not sent by kill
  if (const char* path = is_access ? mapped_file_at(info->si_addr) : nullptr) {
    while (is_reported.test_and_set()) pause();  // another thread ends the program
    remove_temporary_files();
    print("\nerror: reading ");
    print_path(path);
    print(kMappedFileIsGone);
    print("\n");
    _exit(kFailed);
  }
  // An access happens again on return; a signal that was sent does not.
  std::signal(SIGBUS, SIG_DFL);
  if (info->si_code <= 0) std::raise(SIGBUS);
}

#endif

}  // namespace

void report_fatal_errors() {
  std::set_new_handler(on_no_memory);
  std::set_terminate(on_terminate);
#ifndef _WIN32
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
#endif
}

int report_out_of_memory() noexcept {
  print(kOutOfMemory);
  return kFailed;
}

}  // namespace prism::cli
