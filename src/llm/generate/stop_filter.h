// Holds back streamed text while it may still be the start of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops);

  // Returns the text that can be shown now. After a complete stop string, returns nothing more: the
  // stop string and everything after it are dropped.
  std::string put(std::string_view text);
  // Returns the remaining text if no stop string was found.
  std::string finish();
  bool stopped() const { return !found_.empty(); }
  const std::string& found() const { return found_; }  // the stop string found, or empty

 private:
  std::vector<std::string> stops_;
  std::string held_, found_;
};

}  // namespace prism::llm
