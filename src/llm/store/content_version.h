// The version of a file on a server, as the headers of an answer describe it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "llm/store/http.h"

namespace prism::llm {

struct ContentVersion {
  std::string etag, last_modified;  // as sent; empty: none
  std::optional<uint64_t> bytes;    // the size of the whole file
  std::string linked_sha256;        // sent by a server that redirected here; empty: none

  // The value for If-Range: a strong ETag, else Last-Modified. Empty if there is neither.
  std::string validator() const;
  // The ETag if it is a sha256, as on some servers; else empty.
  std::string own_sha256() const;
  // Returns whether nothing that both have differs.
  bool agrees_with(const ContentVersion& other) const;
  // Returns whether a partial answer of the version `sent` continues content of this version: they
  // agree, and both have the same validator.
  bool is_continued_by(const ContentVersion& sent) const;

  std::string text() const;  // for a file beside an incomplete download
  static ContentVersion parse(std::string_view text);
};

// "bytes 100-199/5000": both ends are inclusive; "*" in place of the size means unknown.
struct ContentRange {
  uint64_t first = 0, last = 0;
  std::optional<uint64_t> file_bytes;
};
std::optional<ContentRange> parse_content_range(std::string_view text);

// Returns the whole text as a number; nothing for signs, spaces, letters and overflow.
std::optional<uint64_t> parse_bytes(std::string_view text);

std::string header(const HttpAnswer& answer, const std::string& name);  // empty if absent
// The size is Content-Length for status 200 and the size in Content-Range for others.
ContentVersion version_of(const HttpAnswer& answer);

}  // namespace prism::llm
