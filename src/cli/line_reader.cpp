// Reads lines with GNU readline or libedit, opened at run time, or without an editing library.
#include "cli/line_reader.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>

#ifndef _WIN32
#include <poll.h>
#include <unistd.h>
#endif

#include "base/cache_folder.h"
#include "base/system/dynamic_library.h"
#include "base/system/is_terminal.h"

namespace prism::cli {
namespace {

std::atomic<bool> interrupted = false;

void on_interrupt(int) { interrupted = true; }

// Catches Ctrl-C while a line is read.
class CaughtInterrupts {
 public:
#ifndef _WIN32
  CaughtInterrupts() {
    interrupted = false;
    struct sigaction action = {};
    action.sa_handler = on_interrupt;  // without SA_RESTART, so that it ends a blocked read
    sigaction(SIGINT, &action, &before_);
  }
  ~CaughtInterrupts() { sigaction(SIGINT, &before_, nullptr); }
#else
  CaughtInterrupts() {
    interrupted = false;
    before_ = std::signal(SIGINT, on_interrupt);
  }
  ~CaughtInterrupts() { std::signal(SIGINT, before_ == SIG_ERR ? SIG_DFL : before_); }
#endif
  CaughtInterrupts(const CaughtInterrupts&) = delete;
  CaughtInterrupts& operator=(const CaughtInterrupts&) = delete;

 private:
#ifndef _WIN32
  struct sigaction before_ = {};
#else
  void (*before_)(int);
#endif
};

#ifndef _WIN32
// Returns the next byte of the terminal, EOF at its end, or a newline after Ctrl-C, which ends the
// line that is being edited. Polling also sees a Ctrl-C that comes just before the read.
int next_byte(FILE*) {
  for (;;) {
    if (interrupted) return '\n';
    pollfd wanted{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, 50) <= 0) continue;
    unsigned char byte = 0;
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got == 1) return byte;
    if (got == 0 || errno != EINTR) return EOF;
  }
}
#endif

// Reads a line from the terminal without an editing library.
TypedLine plain_line() {
  TypedLine line;
#ifndef _WIN32
  for (;;) {
    const int byte = next_byte(nullptr);
    if (interrupted) return {LineEnd::interrupted, ""};  // the terminal has discarded the line
    if (byte == '\n') return line;
    if (byte == EOF) {
      if (line.text.empty()) line.end = LineEnd::input;
      return line;
    }
    line.text += static_cast<char>(byte);
  }
#else
  if (!std::getline(std::cin, line.text))
    line.end = interrupted ? LineEnd::interrupted : LineEnd::input;
  return line;
#endif
}

}  // namespace

// The interface of GNU readline, which libedit also implements.
struct LineReader::State {
  DynamicLibrary library;
  char* (*readline)(const char*) = nullptr;
  void (*add_history)(const char*) = nullptr;
  int (*read_history)(const char*) = nullptr;
  int (*write_history)(const char*) = nullptr;
  std::string history, last;

  TypedLine edited_line(const std::string& prompt);
};

LineReader::LineReader(const std::string& history) : state_(std::make_unique<State>()) {
  if (!is_terminal(Stream::input)) return;
  State& s = *state_;
  s.library = DynamicLibrary::open_first(
      {"libreadline.so.8", "libedit.so.2", "libedit.so.0", "libreadline.dylib", "libedit.dylib"});
  if (!s.library) return;
  s.library.keep_open();
  s.readline = s.library.function<char* (*)(const char*)>("readline");
  s.add_history = s.library.function<void (*)(const char*)>("add_history");
  s.read_history = s.library.function<int (*)(const char*)>("read_history");
  s.write_history = s.library.function<int (*)(const char*)>("write_history");
#ifndef _WIN32
  // Without this the library's own handler ends the program.
  if (auto* const catches = s.library.function<int*>("rl_catch_signals")) *catches = 0;
  // libedit expects characters here, not bytes; with libedit an interrupted read ends the line.
  const bool is_gnu = s.library.function<void*>("rl_gnu_readline_p") != nullptr;
  if (auto* const get = s.library.function<int (**)(FILE*)>("rl_getc_function"); get && is_gnu)
    *get = next_byte;
#endif
  s.history = cache_subfolder(history).string();
  if (s.read_history && !s.history.empty()) s.read_history(s.history.c_str());
}

LineReader::~LineReader() {
  if (state_->write_history && !state_->history.empty())
    state_->write_history(state_->history.c_str());
}

TypedLine LineReader::State::edited_line(const std::string& prompt) {
  char* const typed = readline(prompt.c_str());
  const std::string text = typed ? typed : "";
  std::free(typed);
  if (interrupted) return {LineEnd::interrupted, text};
  if (!typed) return {LineEnd::input, ""};
  if (add_history && !text.empty() && text != last) add_history(text.c_str());
  last = text;
  return {LineEnd::line, text};
}

TypedLine LineReader::read(const std::string& prompt) {
  if (is_terminal(Stream::input)) {
    const CaughtInterrupts caught;
    if (state_->readline) return state_->edited_line(prompt);
    std::cerr << prompt << std::flush;
    const TypedLine line = plain_line();
    if (line.end == LineEnd::interrupted) std::cerr << "\n";
    return line;
  }
  TypedLine line;
  if (!std::getline(std::cin, line.text)) line.end = LineEnd::input;
  return line;
}

}  // namespace prism::cli
