// Parses HTTP header lines.
#include "llm/store/http_headers.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace prism {

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return text;
}

}  // namespace

bool HttpHeaders::is_redirect() const {
  return answer_.status >= 300 && answer_.status < 400 && answer_.headers.contains("location");
}

void HttpHeaders::begin_answer(std::string_view status_line) {
  is_whole_ = false;
  for (const auto& [name, value] : answer_.headers)
    if (name.starts_with("x-linked-")) answer_.linked.emplace(name, value);
  answer_.headers.clear();
  answer_.status = 0;
  const size_t space = status_line.find(' ');
  if (space == std::string_view::npos) return;
  const char* const end = status_line.data() + status_line.size();
  std::from_chars(status_line.data() + space + 1, end, answer_.status);
}

bool HttpHeaders::line(std::string_view text) {
  bytes_ += text.size();
  if (bytes_ > kMostBytes) {
    is_whole_ = false;
    answer_.problem =
        "the server sends more than " + std::to_string(kMostBytes >> 10) + " KiB of headers";
    return false;
  }
  text = trimmed(text);
  if (text.starts_with("HTTP/")) {
    begin_answer(text);
    return true;
  }
  if (text.empty()) {
    is_whole_ = answer_.status != 0;
    return true;
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return true;
  std::string name(trimmed(text.substr(0, colon)));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string value(trimmed(text.substr(colon + 1)));
  const auto [place, is_new] = answer_.headers.emplace(name, value);
  if (!is_new && place->second != value) place->second += ", " + value;
  return true;
}

}  // namespace prism
