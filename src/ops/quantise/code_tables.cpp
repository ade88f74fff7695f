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

namespace {

constexpr uint32_t kOnes = 0x01010101u, kTops = 0x80808080u;

// Negates the bytes whose bit 0 of `signs` is set.
Value with_signs(Value magnitudes, Value signs) {
  // Each byte without borrowing from the next: 0x80 - m, then flip the top bit.
  const Value negative = (constant_bits(u32, kTops) - magnitudes) ^ kTops;
  const Value mask = (signs & kOnes) * 255u;
  return (magnitudes & ~mask) | (negative & mask);
}

// Bytes that were computed 128 too large, so that none borrowed from the next.
Value less_128(Value bytes) { return bytes ^ kTops; }

Value mxfp4_values(Value codes) {
  // Magnitudes 0, 1, 2, 3, 4, 6, 8, 12: codes from 4 on add their low two bits, and 7 adds two
  // more.
  const Value size = codes & 0x07070707u;
  const Value large = (size >> 2u) & kOnes;
  const Value growth = size & (large * 3u);
  const Value seven = size & (size >> 1u) & large;
  return with_signs(size + growth + seven * 2u, codes >> 3u);
}

// 8q - 7, and 2 less where bit 2 is set.
Value iq1_values(Value codes) {
  const Value subtract = (codes >> 2u) & kOnes;
  return less_128((codes & 0x03030303u) * 8u + (0x80u - 7u) * kOnes - subtract * 2u);
}

// Magnitudes 8, 25, 43: 8 + 17q, and one more for 2.
Value iq2_values(Value codes) {
  const Value size = codes & 0x03030303u;
  return with_signs(size * 17u + ((size >> 1u) & kOnes) + 8u * kOnes, codes >> 2u);
}

// Magnitudes 4, 12, 20 ... 52, 62: 8q + 4, and two more for 7.
Value iq3_xxs_values(Value codes) {
  const Value size = codes & 0x07070707u;
  const Value seven = size & (size >> 1u) & (size >> 2u) & kOnes;
  return with_signs(size * 8u + seven * 2u + 4u * kOnes, codes >> 3u);
}

}  // namespace

Value code_values(QuantValues values, Value codes) {
  switch (values) {
    case QuantValues::mxfp4:
      return mxfp4_values(codes);
    case QuantValues::iq1:
      return iq1_values(codes);
    case QuantValues::iq2:
      return iq2_values(codes);
    case QuantValues::iq3_xxs:
      return iq3_xxs_values(codes);
    case QuantValues::iq3_s:
      return less_128(codes * 2u + (0x80u - 15u) * kOnes);
    case QuantValues::linear:
    case QuantValues::iq4:
      break;
  }
  return codes;
}

Value nvfp4_scale(Value code) {
  const Value bits = code & 127u;
  const Value small = cast(f32, bitcast(i32, bits)) * 0x1p-10f;
  const Value scale = select(bits < 8u, small, bitcast(f32, (bits << 20u) + (119u << 23u)));
  return select(code == 127u, constant(f32, 0.0), scale);
}

}  // namespace prism::ops
