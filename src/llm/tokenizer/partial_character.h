// Incremental decoding of one UTF-8 character, because tokens may split characters.
#pragma once

#include <cstdint>

namespace prism::llm {

// A character after some of its bytes: it is between first and last, and `missing` bytes follow.
// Rejects overlong forms and code points beyond Unicode, but not surrogates.
struct PartialCharacter {
  uint32_t first = 0, last = 0;
  uint32_t missing = 0;
  friend bool operator==(const PartialCharacter&, const PartialCharacter&) = default;

  // Returns whether this byte may come next, and advances if so. missing == 0 before: starts a new
  // character; after: the character is complete and equals `first`.
  bool put(uint8_t byte) {
    if (missing == 0) {
      if (byte < 0x80) return *this = {byte, byte, 0}, true;
      if (byte < 0xC2 || byte > 0xF4) return false;
      const uint32_t more = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
      const uint32_t low = (byte & (0x3Fu >> more)) << (6 * more);
      const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
      const uint32_t high = low | ((1u << (6 * more)) - 1);
      *this = {low < least[more] ? least[more] : low, high > 0x10FFFF ? 0x10FFFF : high, more};
      return true;
    }
    if ((byte & 0xC0) != 0x80) return false;
    const uint32_t shift = 6 * (missing - 1), mask = (1u << (shift + 6)) - 1;
    const uint32_t low = (last & ~mask) | uint32_t(byte & 0x3F) << shift;
    const uint32_t high = low | ((1u << shift) - 1);
    if (high < first || low > last) return false;
    *this = {low < first ? first : low, high > last ? last : high, missing - 1};
    return true;
  }
};

}  // namespace prism::llm
