// The program's two output streams. While a ProgramOutput lives, everything that commands write to
// std::cout and std::cerr is escaped by printable(), and failed writes are noticed.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace prism::cli {

class ProgramOutput {
 public:
  ProgramOutput();
  ~ProgramOutput();
  ProgramOutput(const ProgramOutput&) = delete;
  ProgramOutput& operator=(const ProgramOutput&) = delete;

  // Flushes standard output. Throws kIo if anything could not be written, now or before.
  void finish();

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
};

// Wraps a control sequence of the program itself, so that it reaches the terminal. Text from
// elsewhere cannot imitate the wrapping.
std::string control_sequence(const std::string& code);

// Writes a model's text to std::cout at once: escaped on a terminal, else byte by byte as it is.
// Returns false if it cannot be written.
bool write_generated(std::string_view text);

}  // namespace prism::cli
