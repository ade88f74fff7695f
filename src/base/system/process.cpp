// popen with every argument quoted.
#include "base/system/process.h"

#include <cstdio>

#include "prism/error.h"

#ifndef _WIN32
#include <sys/wait.h>
#endif

namespace prism {
namespace {

std::string quoted(const std::string& word) {
#ifdef _WIN32
  return "\"" + word + "\"";  // file names contain no quotes on Windows
#else
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
#endif
}

FILE* start(const std::string& command) {
#ifdef _WIN32
  return _popen(("\"" + command + "\"").c_str(), "r");  // cmd strips the outer quotes
#else
  return popen(command.c_str(), "r");
#endif
}

int finish(FILE* pipe) {
#ifdef _WIN32
  return _pclose(pipe);
#else
  const int status = pclose(pipe);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 1;
#endif
}

using Variables = std::vector<std::pair<std::string, std::string>>;

FILE* start_words(const std::vector<std::string>& words, const char* redirection,
                  const Variables& variables = {}) {
  std::string command;
#ifndef _WIN32
  for (const auto& [name, value] : variables) command += name + "=" + quoted(value) + " ";
#else
  (void)variables;
#endif
  for (const std::string& word : words) command += quoted(word) + " ";
  FILE* pipe = start(command + redirection);
  if (!pipe)
    throw Error(ErrorCode::kIo,
                "starting " + words.front() + ": the system cannot create a process");
  return pipe;
}

}  // namespace

int run_process(const std::vector<std::string>& words,
                const std::function<void(const std::string&)>& line, const Variables& variables) {
  FILE* const pipe = start_words(words, "2>&1", variables);
  std::string text;
  const auto hand_over = [&] {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    if (line && !text.empty()) line(text);
    text.clear();
  };
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
    if (c == '\n')
      hand_over();
    else
      text += static_cast<char>(c);
  }
  hand_over();
  return finish(pipe);
}

int read_process(const std::vector<std::string>& words,
                 const std::function<bool(std::span<const std::byte>)>& sink) {
#ifdef _WIN32
  FILE* const pipe = start_words(words, "2>NUL");
#else
  FILE* const pipe = start_words(words, "2>/dev/null");
#endif
  std::vector<std::byte> piece(1 << 16);
  try {
    while (const size_t bytes = std::fread(piece.data(), 1, piece.size(), pipe))
      if (!sink(std::span(piece).first(bytes))) break;
  } catch (...) {
    finish(pipe);
    throw;
  }
  return finish(pipe);
}

}  // namespace prism
