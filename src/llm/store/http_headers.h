// The header lines of HTTP answers, as they come in.
#pragma once

#include <string>
#include <string_view>

#include "llm/store/http.h"

namespace prism {

// Takes header lines of one answer after the other; a status line begins anew, but for x-linked-*.
class HttpHeaders {
 public:
  void line(std::string_view text);  // with or without its line end
  // Whether the headers of an answer are whole that is not followed by another.
  bool is_final() const { return is_whole_ && !is_redirect() && answer_.status >= 200; }
  HttpAnswer& answer() { return answer_; }

 private:
  bool is_redirect() const;
  HttpAnswer answer_;
  bool is_whole_ = false;
};

}  // namespace prism
