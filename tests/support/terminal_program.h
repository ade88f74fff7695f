// Runs a program on its own terminal, for tests of what a user sees.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace prism::test {

// Runs a program with a pseudo-terminal of 80 columns as its input, output and errors.
class TerminalProgram {
 public:
  // variables: "NAME=value", added to the environment. Throws std::runtime_error.
  TerminalProgram(const std::vector<std::string>& words,
                  const std::vector<std::string>& variables = {});
  ~TerminalProgram();  // kills the program if it still runs
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  void type(const std::string& keys);  // "\x03" is Ctrl-C
  // Waits until the text appears after all texts waited for before. Returns false on a timeout, or
  // if the program ends without it.
  bool sees(const std::string& text, double seconds = 30);
  // Waits for the end of the program and returns its exit status, 128 + the signal's number, or -1
  // on a timeout.
  int wait(double seconds = 30);
  const std::string& screen() const { return screen_; }  // everything it wrote

 private:
  bool read_some(double seconds);

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string screen_;
  size_t seen_ = 0;
};

}  // namespace prism::test
