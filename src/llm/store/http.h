// HTTP and HTTPS with libcurl, opened at run time, or else with the program curl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "prism/error.h"

namespace prism {

struct HttpRequest {
  std::string url;                   // http or https
  uint64_t first_byte = 0;           // of the content; if byte_count is 0 too: the whole file
  uint64_t byte_count = 0;           // 0: to the end
  std::vector<std::string> headers;  // "Name: value", without control characters
  int connect_seconds = 30;
  int stall_seconds = 60;  // the transfer ends after this time with less than 1000 bytes a second
  // Called with the answer before its content; returning false ends the transfer. Not called for
  // redirects, which are followed.
  std::function<bool(const struct HttpAnswer&)> answer;
  std::function<bool(std::span<const std::byte>)> content;  // in pieces; false ends the transfer
};

struct HttpAnswer {
  int status = 0;                              // 200, 206, 404
  std::map<std::string, std::string> headers;  // names in lower case; repeated ones joined by ", "
  std::map<std::string, std::string> linked;   // x-linked-* of the first redirect that had them
  std::string problem;                         // why the transfer is incomplete; empty: complete
};

// Thrown if no whole answer came: no connection, a cut or endless header, a redirect that is not
// followed. The message begins with the address.
class HttpNoAnswer : public Error {
 public:
  explicit HttpNoAnswer(const std::string& message) : Error(ErrorCode::kIo, message) {}
};

// Follows up to 10 redirects, to http and https only, and from https to https only. Throws
// kInvalidArgument for a malformed address or header, kNotSupported with the next step if there is
// neither library nor program, and HttpNoAnswer. A transfer that ends early, also because a
// callback returned false, has a problem. Rethrows the exceptions of callbacks.
HttpAnswer http_get(const HttpRequest& request);

// "libcurl 7.88.1" or "the program curl"; empty if there is neither.
std::string http_provider();

}  // namespace prism
