// Reads lines that a person types, with editing and history if the system has a library for it.
#pragma once

#include <memory>
#include <string>

namespace prism::cli {

enum class LineEnd {
  line,         // a whole line
  interrupted,  // Ctrl-C: the line was thrown away
  input,        // the end of the input (Ctrl-D)
};

struct TypedLine {
  LineEnd end = LineEnd::line;
  std::string text;  // without the newline; after Ctrl-C the typed text, if known
};

class LineReader {
 public:
  // Keeps the history of typed lines in the cache folder under that name.
  explicit LineReader(const std::string& history);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Reads one line. Shows the prompt and catches Ctrl-C only on a terminal.
  TypedLine read(const std::string& prompt);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::cli
