// A parser for the header lines of HTTP answers.
#pragma once

#include <string>
#include <string_view>

#include "llm/store/http.h"

namespace prism {

// Reads the header lines of consecutive answers. A status line clears all headers but x-linked-*.
class HttpHeaders {
 public:
  void line(std::string_view text);  // with or without its line end
  // Returns whether the headers of the last answer are complete.
  bool is_final() const { return is_whole_ && !is_redirect() && answer_.status >= 200; }
  HttpAnswer& answer() { return answer_; }

 private:
  bool is_redirect() const;
  HttpAnswer answer_;
  bool is_whole_ = false;
};

}  // namespace prism
