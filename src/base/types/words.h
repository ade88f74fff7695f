// Reads and writes words of 32 bits at any address.
#pragma once

#include <cstdint>
#include <cstring>

namespace prism {

inline uint32_t load_word(const uint8_t* from) {
  uint32_t word;
  std::memcpy(&word, from, 4);
  return word;
}

inline void store_word(uint8_t* to, uint32_t word) { std::memcpy(to, &word, 4); }

}  // namespace prism
