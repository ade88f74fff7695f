// UTF-8 as bytes and code points, with invalid bytes told apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace prism::llm {

struct Utf8Character {
  uint32_t code = 0;     // U+FFFD where invalid
  uint32_t bytes = 1;    // how many it takes; 1 where invalid
  bool is_valid = true;  // false also for a character cut off by the end
};

// The character that starts at text[at]; at < text.size(). Overlong forms, surrogates and what lies
// beyond U+10FFFF are invalid.
Utf8Character utf8_at(std::string_view text, size_t at);

// Bytes of the character that a lead byte announces; 1 for anything that leads none.
inline uint32_t utf8_length(unsigned char lead) {
  return lead < 0xc2 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 1;
}

// Where the longest valid start of text[from..] ends.
size_t utf8_valid_end(std::string_view text, size_t from);

// Bytes at the end of the text that begin a character and may yet be completed: 0 to 3.
size_t utf8_open_bytes(std::string_view text);

void append_utf8(uint32_t code, std::string* to);

// The text with each invalid byte replaced by U+FFFD.
std::string repair_utf8(std::string_view text);

}  // namespace prism::llm
