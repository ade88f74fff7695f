// Reads and compares validators, lengths and ranges of HTTP answers.
#include "llm/store/content_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace prism::llm {

namespace {

// A validator is sent back in a header and kept as a line of a file, so it must be printable.
std::string printable(std::string text) {
  const bool is_right = text.size() <= 1000 && std::ranges::all_of(text, [](unsigned char c) {
                          return c >= 0x20 && c != 0x7f;
                        });
  return is_right ? text : "";
}

// Returns the sha256 in a tag such as W/"0123...", or an empty text.
std::string sha256_in(std::string tag) {
  if (tag.starts_with("W/")) tag.erase(0, 2);
  std::erase(tag, '"');
  const bool is_right =
      tag.size() == 64 && tag.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_right ? tag : "";
}

bool agree(const std::string& a, const std::string& b) { return a.empty() || b.empty() || a == b; }

}  // namespace

std::optional<uint64_t> parse_bytes(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, value);
  return failed == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return std::nullopt;
  const auto first = parse_bytes(text.substr(0, dash));
  const auto last = parse_bytes(text.substr(dash + 1, slash - dash - 1));
  const std::string_view size = text.substr(slash + 1);
  const auto file_bytes = parse_bytes(size);
  if (!first || !last || *last < *first || *last == UINT64_MAX || (!file_bytes && size != "*") ||
      (file_bytes && *last >= *file_bytes))
    return std::nullopt;
  return ContentRange{*first, *last, file_bytes};
}

std::string header(const HttpAnswer& answer, const std::string& name) {
  const auto found = answer.headers.find(name);
  return found == answer.headers.end() ? "" : found->second;
}

ContentVersion version_of(const HttpAnswer& answer) {
  ContentVersion version;
  version.etag = printable(header(answer, "etag"));
  version.last_modified = printable(header(answer, "last-modified"));
  if (const auto linked = answer.linked.find("x-linked-etag"); linked != answer.linked.end())
    version.linked_sha256 = sha256_in(linked->second);
  if (answer.status != 200) {
    if (const auto range = parse_content_range(header(answer, "content-range")))
      version.bytes = range->file_bytes;
  } else if (header(answer, "transfer-encoding").empty()) {  // which overrides the length
    version.bytes = parse_bytes(header(answer, "content-length"));
  }
  return version;
}

std::string ContentVersion::validator() const {
  return etag.empty() || etag.starts_with("W/") ? last_modified : etag;
}

std::string ContentVersion::own_sha256() const { return sha256_in(etag); }

bool ContentVersion::agrees_with(const ContentVersion& other) const {
  return agree(etag, other.etag) && agree(last_modified, other.last_modified) &&
         agree(linked_sha256, other.linked_sha256) &&
         (!bytes || !other.bytes || *bytes == *other.bytes);
}

bool ContentVersion::is_continued_by(const ContentVersion& sent) const {
  return agrees_with(sent) && !validator().empty() && sent.validator() == validator();
}

std::string ContentVersion::text() const {
  return fmt::format("{}\n{}\n{}\n{}\n", etag, last_modified, bytes ? std::to_string(*bytes) : "",
                     linked_sha256);
}

ContentVersion ContentVersion::parse(std::string_view text) {
  const auto take_line = [&] {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  ContentVersion version;
  version.etag = printable(take_line());
  version.last_modified = printable(take_line());
  version.bytes = parse_bytes(take_line());
  version.linked_sha256 = sha256_in(take_line());
  return version;
}

}  // namespace prism::llm
