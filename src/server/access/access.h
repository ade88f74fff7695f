// Who may send requests: API keys, and the Host and Origin headers, which show that a browser was
// led here by another site.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/http/http_message.h"

namespace prism::server {

struct AccessOptions {
  std::string address = "127.0.0.1";          // that the server listens on
  std::vector<std::string> api_keys = {};     // empty: none is needed
  bool no_auth = false;                       // listen on any address without a key
  std::vector<std::string> cors = {};         // origins whose pages may use the server; "*": any
  std::vector<std::string> allow_hosts = {};  // further names of this server
};

struct Refusal {
  int status = 403;
  std::string message;
};

class Access {
 public:
  // Throws kInvalidArgument for an address that other machines reach without an API key, for an
  // empty key, and for a text in cors that is not an origin.
  explicit Access(AccessOptions options);

  // is_open: the request needs no key.
  std::optional<Refusal> check(const HttpRequest& request, bool is_open) const;
  // The CORS headers of the answer; empty if the request has no origin that may read it.
  HttpHeaders cors_headers(const HttpRequest& request) const;
  bool needs_key() const { return !key_hashes_.empty(); }

 private:
  bool is_own_host(std::string_view host) const;
  bool is_allowed_origin(std::string_view origin) const;
  bool is_known_key(std::string_view key) const;

  AccessOptions options_;
  std::vector<std::string> key_hashes_;
};

// Returns whether only this machine reaches the address.
bool is_loopback(std::string_view address);

// Reads keys from a file, one on each line; empty lines and lines with # are left out. Throws
// kNotFound, and kInvalidArgument for a file without keys.
std::vector<std::string> read_api_keys(const std::string& path);

}  // namespace prism::server
