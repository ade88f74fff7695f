#include "cli/line_reader.h"

#include <cstdlib>
#include <iostream>

#include "base/cache_folder.h"
#include "base/system/dynamic_library.h"
#include "base/system/is_terminal.h"

namespace prism::cli {

// readline's own interface, which libedit offers too: whichever is installed.
struct LineReader::State {
  DynamicLibrary library;
  char* (*readline)(const char*) = nullptr;
  void (*add_history)(const char*) = nullptr;
  int (*read_history)(const char*) = nullptr;
  int (*write_history)(const char*) = nullptr;
  std::string history, last;
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
  s.history = cache_subfolder(history).string();
  if (s.read_history && !s.history.empty()) s.read_history(s.history.c_str());
}

LineReader::~LineReader() {
  if (state_->write_history && !state_->history.empty())
    state_->write_history(state_->history.c_str());
}

std::optional<std::string> LineReader::read(const std::string& prompt) {
  State& s = *state_;
  if (s.readline) {
    char* typed = s.readline(prompt.c_str());
    if (!typed) return std::nullopt;
    std::string line = typed;
    std::free(typed);
    if (s.add_history && !line.empty() && line != s.last) s.add_history(line.c_str());
    s.last = line;
    return line;
  }
  if (is_terminal(Stream::input)) std::cerr << prompt << std::flush;
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  return line;
}

}  // namespace prism::cli
