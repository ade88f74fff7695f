// The codebooks of the iq1, iq2 and iq3 types: an index stands for four or eight values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace prism {

struct Codebook {
  // The values of entry i as bytes, the first one lowest. iq1: eight times the ternary digit, plus
  // 1; the others: magnitudes, eight for iq2 and four for iq3.
  std::vector<uint64_t> values;
  std::vector<uint16_t> numbers;  // ascending: digit n, to the base, says which value element n has
  uint32_t base = 0;              // 3 or 8
  std::array<uint8_t, 256> digit_of{};  // by value

  uint32_t elements() const { return base == 3 ? 8 : 4; }  // of an entry
  // The entry with these values; they must be in the book.
  uint32_t index_of(const uint8_t* bytes) const;
};

struct Codebooks {
  Codebook iq1, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s;
};
const Codebooks& codebooks();

}  // namespace prism
