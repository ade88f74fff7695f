// GPT-2's alphabet: each byte as a printable character.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace prism::llm {

// A byte is written as the character with its number, or as the next one from U+0100 on.
struct ByteAlphabet {
  std::array<std::string, 256> characters;
  std::array<int16_t, 512> bytes;  // by code point; -1: not a byte

  ByteAlphabet();
  // The text of these bytes in the alphabet.
  std::string spell(std::string_view text) const;
};

const ByteAlphabet& byte_alphabet();

}  // namespace prism::llm
