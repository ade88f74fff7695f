// Table look-ups for four codes at once with operations on whole words.
#include "ops/quantise/code_tables.h"

#include <array>

#include "base/types/block_formats.h"

namespace prism::ops {

using namespace dsl;

namespace {

// The table as four words of four bytes.
std::array<uint32_t, 4> iq4_words() {
  std::array<uint32_t, 4> words{};
  for (uint32_t i = 0; i < 16; ++i)
    words[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(kIq4Values[i])) << (8 * (i % 4));
  return words;
}

// For each of the four 4-bit selectors in the low half of a word, byte s of the eight bytes of low
// and high; only three bits of a selector are used.
Value choose_bytes(Value low, Value high, Value selectors) {
  return raw("cuda", "{r} = __byte_perm({0}, {1}, {2});", {low, high, selectors}, Type{u32, 1},
             [&] {
               Value result = constant(u32, 0);
               for (uint32_t i = 0; i < 4; ++i) {
                 const Value selector = selectors >> (4 * i);
                 const Value word = select((selector & 4u) == 0u, low, high);
                 result = result | (((word >> ((selector & 3u) * 8u)) & 255u) << (8 * i));
               }
               return result;
             });
}

// Decodes the four nibbles in the low half of a word to bytes, in order.
Value four_values(Value nibbles) {
  const auto table = iq4_words();
  const auto word = [&](uint32_t i) { return constant_bits(u32, table[i]); };
  const Value below = choose_bytes(word(0), word(1), nibbles);
  const Value above = choose_bytes(word(2), word(3), nibbles);
  // The top bit of code i selects byte i of one half or the other.
  return choose_bytes(below, above, ((nibbles & 0x8888u) >> 1u) | 0x3210u);
}

}  // namespace

std::pair<Value, Value> iq4_values(Value word) {
  // In the order of the nibbles: low and high half of byte 0, of byte 1, ...
  const Value first = four_values(word & 0xFFFFu), second = four_values(word >> 16u);
  return {choose_bytes(first, second, constant(u32, 0x6420)),
          choose_bytes(first, second, constant(u32, 0x7531))};
}

Value mxfp4_values(Value codes) {
  // Magnitudes 0, 1, 2, 3, 4, 6, 8, 12: codes from 4 on add their low two bits, and 7 adds two
  // more.
  const Value size = codes & 0x07070707u;
  const Value large = (size >> 2u) & 0x01010101u;
  const Value growth = size & (large * 3u);
  const Value seven = size & (size >> 1u) & large;
  const Value magnitude = size + growth + seven * 2u;
  // Negate each byte without borrowing from the next: 0x80 - m, then flip the top bit.
  const Value negative = (constant_bits(u32, 0x80808080u) - magnitude) ^ 0x80808080u;
  const Value mask = ((codes >> 3u) & 0x01010101u) * 255u;
  return (magnitude & ~mask) | (negative & mask);
}

}  // namespace prism::ops
