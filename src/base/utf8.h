// UTF-8 decoding that distinguishes invalid bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace prism {

struct Utf8Character {
  uint32_t code = 0;     // U+FFFD if invalid
  uint32_t bytes = 1;    // length; 1 if invalid
  bool is_valid = true;  // also false for a character truncated by the end
};

// The character at text[at]; at < text.size(). Overlong forms, surrogates and code points beyond
// U+10FFFF are invalid.
Utf8Character utf8_at(std::string_view text, size_t at);

// The length that a lead byte announces; 1 for any other byte.
inline uint32_t utf8_length(unsigned char lead) {
  return lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
}

// The end of the longest valid prefix of text[from..].
size_t utf8_valid_end(std::string_view text, size_t from);

// The number of bytes at the end that form an incomplete character: 0 to 3.
size_t utf8_open_bytes(std::string_view text);

void append_utf8(uint32_t code, std::string* to);

// Replaces each invalid byte by U+FFFD.
std::string repair_utf8(std::string_view text);

}  // namespace prism
