// Lines that a person types, with editing and history where the system has a library for it.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace prism::cli {

class LineReader {
 public:
  // Lines typed before are remembered in the cache folder under that name.
  explicit LineReader(const std::string& history);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // A line without its end; nothing at the end of input. The prompt is shown on a terminal only.
  std::optional<std::string> read(const std::string& prompt);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism::cli
