// A parser for the header lines of HTTP answers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "llm/store/http.h"

namespace prism {

// Reads the header lines of consecutive answers: interim ones, redirects, the final one.
class HttpHeaders {
 public:
  // Real servers send a few KiB in total.
  static constexpr size_t kMostBytes = 256 << 10;

  // Takes a line with or without its line end. Returns false if the server has sent more than
  // kMostBytes; answer().problem then says so.
  bool line(std::string_view text);
  // Returns whether the headers of the last answer are complete.
  bool is_final() const { return is_whole_ && !is_redirect() && answer_.status >= 200; }
  HttpAnswer& answer() { return answer_; }

 private:
  bool is_redirect() const;
  void begin_answer(std::string_view status_line);
  HttpAnswer answer_;
  bool is_whole_ = false;
  size_t bytes_ = 0;
};

}  // namespace prism
