// Codebooks in the form in which kernels look up many entries at once: an entry in 16 bits.
#pragma once

#include <array>
#include <cstdint>

#include "prism/element_type.h"

namespace prism::cpu {

// Digit n of an entry is at bit 8 * (n % 2) + width * (n / 2). The width is 2 where entries have
// eight elements and 4 where they have four. `values` says what a digit stands for.
struct CodebookWords {
  alignas(64) std::array<uint16_t, 2048> entries{};
  std::array<int8_t, 16> values{};
};

// Null if the type has no codebook.
const CodebookWords* codebook_words(BlockType type);

}  // namespace prism::cpu
