// HTTP and HTTPS by libcurl, opened at run time, or else by the program curl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace prism {

struct HttpRequest {
  std::string url;                   // http or https
  uint64_t first_byte = 0;           // of the content; 0 and byte_count 0: all of it
  uint64_t byte_count = 0;           // 0: to the end
  std::vector<std::string> headers;  // "Name: value"
  // Told of the answer before its content; returning false ends the transfer. Redirects are
  // followed and not told.
  std::function<bool(const struct HttpAnswer&)> answer;
  std::function<bool(std::span<const std::byte>)> content;  // in pieces; false ends the transfer
};

struct HttpAnswer {
  int status = 0;                              // 200, 206, 404
  std::map<std::string, std::string> headers;  // names in small letters; x-linked-* also of the
                                               // answers that redirected here
  std::string problem;  // what cut the transfer short, in words; empty when it is whole
};

// Throws kNotSupported with the next step where there is neither library nor program, kIo where no
// answer came at all. A transfer that ends early (also by a callback's false) has a problem.
// What a callback throws comes out here.
HttpAnswer http_get(const HttpRequest& request);

// "libcurl 7.88.1" or "the program curl"; empty where there is neither.
std::string http_provider();

}  // namespace prism
