// HTTP messages: requests as handlers see them, and whole replies.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prism::server {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;        // GET, POST ...
  std::string path;          // decoded, without the query
  std::string query = {};    // as sent, without '?'
  HttpHeaders headers = {};  // names in lower case
  std::string body = {};
  std::string peer = {};  // address of the client

  // Empty if absent; name in lower case.
  std::string_view header(std::string_view name) const;
};

struct HttpReply {
  int status = 200;
  HttpHeaders headers = {};
  std::string body = {};
};

const char* http_reason(int status);  // "Not Found"

// Decodes %XX. Returns false for an incomplete or invalid escape, and for control characters.
bool decode_path(std::string_view text, std::string& path);

// "host:port" without the port; brackets of an IPv6 address stay: "[::1]".
std::string_view host_of(std::string_view host_and_port);

}  // namespace prism::server
