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

void HttpHeaders::line(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("HTTP/")) {
    is_whole_ = false;
    answer_.status = 0;
    std::erase_if(answer_.headers,
                  [](const auto& header) { return !header.first.starts_with("x-linked-"); });
    const size_t space = text.find(' ');
    if (space != std::string_view::npos)
      std::from_chars(text.data() + space + 1, text.data() + text.size(), answer_.status);
    return;
  }
  if (text.empty()) {
    is_whole_ = answer_.status != 0;
    return;
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return;
  std::string name(trimmed(text.substr(0, colon)));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  answer_.headers[name] = trimmed(text.substr(colon + 1));
}

}  // namespace prism
