// Checks keys, hosts and origins of requests.
#include "server/access/access.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include "base/sha256.h"
#include "prism/error.h"

namespace prism::server {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string hash_of(std::string_view key) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(key)));
  return hash.finish();
}

// Takes the same time wherever the texts differ.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

// An IPv4 address, or an IPv6 address in brackets. Other sites reach this machine only by a name.
bool is_ip_address(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) return true;
  return !host.empty() && std::ranges::count(host, '.') == 3 &&
         std::ranges::all_of(host, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// An origin without the slash that people add. Throws for a text that no browser sends as one.
std::string origin_of(std::string origin) {
  if (origin == "*" || origin == "null") return origin;
  const size_t host = origin.find("://");
  if (origin.ends_with('/')) origin.pop_back();
  if (host == 0 || host == origin.npos || host + 3 >= origin.size() ||
      origin.find_first_of("/?# ", host + 3) != origin.npos)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("serve: \"{}\" is not an origin; --cors takes one like "
                            "https://app.example or http://localhost:3000, or *",
                            origin));
  return origin;
}

}  // namespace

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Access::Access(AccessOptions options) : options_(std::move(options)) {
  for (const std::string& key : options_.api_keys) {
    if (key.empty())
      throw Error(ErrorCode::kInvalidArgument,
                  "serve: an API key is empty; is the variable set that it came from?");
    key_hashes_.push_back(hash_of(key));
  }
  for (std::string& origin : options_.cors) origin = origin_of(std::move(origin));
  for (std::string& host : options_.allow_hosts) host = lower(host);
  if (!is_loopback(options_.address) && key_hashes_.empty() && !options_.no_auth)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("serve: other machines can reach {}, and without an API key everyone "
                            "there could use the models and read answers; give --api-key KEY, or "
                            "--no-auth if the network is trusted",
                            options_.address));
}

bool Access::is_own_host(std::string_view host_and_port) const {
  const std::string host = lower(host_of(host_and_port));
  return is_ip_address(host) || host == "localhost" || host.ends_with(".localhost") ||
         host == lower(options_.address) ||
         std::ranges::find(options_.allow_hosts, host) != options_.allow_hosts.end();
}

bool Access::is_allowed_origin(std::string_view origin) const {
  return std::ranges::any_of(options_.cors, [&](const std::string& each) {
    return each == "*" || lower(each) == lower(origin);
  });
}

bool Access::is_known_key(std::string_view key) const {
  // Hashes have one length, and all keys are compared, so that the time tells nothing.
  const std::string hash = hash_of(key);
  bool is_known = false;
  for (const std::string& each : key_hashes_) is_known |= equal_in_constant_time(each, hash);
  return is_known;
}

std::optional<Refusal> Access::check(const HttpRequest& request, bool is_open) const {
  const std::string_view host = request.header("host"), origin = request.header("origin");
  // A page of another site cannot know a key, so a key is enough.
  if (!needs_key() && !is_own_host(host))
    return Refusal{403, fmt::format("\"{}\" is not a name of this server; --allow-host {} adds it",
                                    host, host_of(host))};
  if (!origin.empty() && !is_allowed_origin(origin)) {
    const size_t scheme = origin.find("://");
    if (scheme == origin.npos || lower(origin.substr(scheme + 3)) != lower(host))
      return Refusal{
          403, fmt::format("pages of \"{}\" may not use this server; --cors {} allows it", origin,
                           origin)};
  }
  if (is_open || !needs_key() || request.method == "OPTIONS") return std::nullopt;
  // Clients may send a key of their own beside the one that the user gave them.
  std::string_view key = request.header("x-api-key"), bearer = request.header("authorization");
  bearer = lower(bearer.substr(0, 7)) == "bearer " ? bearer.substr(7) : "";
  if (key.empty() && bearer.empty())
    return Refusal{401, "no API key was sent; send one as \"Authorization: Bearer KEY\""};
  const bool is_known = is_known_key(key), is_bearer_known = is_known_key(bearer);
  if (!is_known && !is_bearer_known)
    return Refusal{401, "the API key is not valid for this server"};
  return std::nullopt;
}

HttpHeaders Access::cors_headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (options_.cors.empty() || origin.empty() || !is_allowed_origin(origin)) return {};
  HttpHeaders headers = {{"Access-Control-Allow-Origin", std::string(origin)}, {"vary", "origin"}};
  if (request.method == "OPTIONS") {
    headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    const std::string_view wanted = request.header("access-control-request-headers");
    headers.emplace_back(
        "Access-Control-Allow-Headers",
        wanted.empty() ? "authorization, content-type, x-api-key" : std::string(wanted));
    headers.emplace_back("Access-Control-Max-Age", "86400");
  }
  return headers;
}

std::vector<std::string> read_api_keys(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    throw Error(ErrorCode::kNotFound,
                fmt::format("--api-key-file: \"{}\" cannot be read; is the path right?", path));
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (keys.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("--api-key-file: \"{}\" has no keys; write one on each line", path));
  return keys;
}

}  // namespace prism::server
