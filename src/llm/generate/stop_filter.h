// Text on its way out, held back while it may still be the beginning of a stop string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops);

  // What of the text so far can be shown. Once a stop string is complete nothing more comes: it and
  // what follows are dropped.
  std::string put(std::string_view text);
  // The rest, where no stop string came.
  std::string finish();
  bool stopped() const { return !found_.empty(); }
  const std::string& found() const { return found_; }  // the stop string that came; else empty

 private:
  std::vector<std::string> stops_;
  std::string held_, found_;
};

}  // namespace prism::llm
