// Unpacks blocks, eight elements at a time as the bytes of a 64-bit word, and packs them again.
#include "base/types/unpacked_block.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/types/codebooks.h"
#include "base/types/words.h"

namespace prism {

namespace {

constexpr uint64_t kOnes = 0x0101010101010101ull, kTops = 0x8080808080808080ull;

void store_eight(int8_t* to, uint64_t bytes) { std::memcpy(to, &bytes, 8); }

// 255 in byte i if bit i is set.
constexpr std::array<uint64_t, 256> kMasks = [] {
  std::array<uint64_t, 256> masks{};
  for (uint32_t bits = 0; bits < 256; ++bits)
    for (uint32_t i = 0; i < 8; ++i)
      if (bits >> i & 1) masks[bits] |= uint64_t{255} << (8 * i);
  return masks;
}();

// Negates the bytes whose bit is set. No byte is 0, so that none carries into the next.
uint64_t with_signs(uint64_t magnitudes, uint32_t bits) {
  const uint64_t mask = kMasks[bits];
  return (magnitudes ^ mask) + (mask & kOnes);
}

// Seven signs and the eighth that makes their number even. A table: not all processors count bits.
constexpr std::array<uint8_t, 128> kAllSigns = [] {
  std::array<uint8_t, 128> signs{};
  for (uint32_t seven = 0; seven < 128; ++seven)
    signs[seven] = static_cast<uint8_t>(seven | (std::popcount(seven) & 1) << 7);
  return signs;
}();
uint32_t all_signs(uint32_t seven) { return kAllSigns[seven]; }

int8_t odd(uint32_t code) { return static_cast<int8_t>(2 * code + 1); }
uint32_t code_of(int8_t odd_scale) { return static_cast<uint32_t>(odd_scale - 1) / 2; }

void set_scales(UnpackedBlock& to, uint32_t group, int8_t scale) {
  to.scales[2 * group] = to.scales[2 * group + 1] = scale;
}

uint32_t sign_bits(const int8_t* eight) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < 8; ++i) bits |= static_cast<uint32_t>(eight[i] < 0) << i;
  return bits;
}

// The entry with the magnitudes of these elements.
uint32_t index_of(const Codebook& book, const int8_t* values) {
  uint8_t magnitudes[8];
  for (uint32_t i = 0; i < book.elements(); ++i)
    magnitudes[i] = static_cast<uint8_t>(values[i] < 0 ? -values[i] : values[i]);
  return book.index_of(magnitudes);
}

// The eight magnitudes of two entries of an iq3 book.
uint64_t two(const uint64_t* book, uint32_t first, uint32_t second) {
  return book[first] | book[second] << 32;
}

// Eight elements of iq1, in eighths: the entry's, of which 1 or -1 is the offset.
uint64_t iq1_values(const uint64_t* book, uint32_t index, bool subtract) {
  // Without a branch, which nobody could predict.
  return ((book[index] ^ kTops) - 2 * kOnes * static_cast<uint64_t>(subtract)) ^ kTops;
}

struct Iq1Entry {
  uint32_t index;
  bool subtract;
};
Iq1Entry iq1_entry(const int8_t* values) {
  const bool subtract = (values[0] & 7) == 7;
  uint8_t added[8];
  for (uint32_t i = 0; i < 8; ++i) added[i] = static_cast<uint8_t>(values[i] + (subtract ? 2 : 0));
  return {codebooks().iq1.index_of(added), subtract};
}

// The word of iq2_xxs and iq3_xxs that has the signs and the scale of 32 elements.
uint32_t signs_and_scale(const UnpackedBlock& from, uint32_t group) {
  uint32_t word = code_of(from.scales[2 * group]) << 28;
  for (uint32_t i = 0; i < 4; ++i)
    word |= (sign_bits(from.values + 32 * group + 8 * i) & 127) << (7 * i);
  return word;
}

// Scales of 4 bits, two in a byte: one for each 16 elements.
void unpack_scales(const uint8_t* scales, UnpackedBlock& to) {
  for (uint32_t i = 0; i < 16; ++i) to.scales[i] = odd(scales[i / 2] >> (4 * (i % 2)) & 15);
}
void pack_scales(const UnpackedBlock& from, uint8_t* scales) {
  for (uint32_t i = 0; i < 8; ++i)
    scales[i] =
        static_cast<uint8_t>(code_of(from.scales[2 * i]) | code_of(from.scales[2 * i + 1]) << 4);
}

}  // namespace

void unpack(const BlockIQ2_XXS& block, UnpackedBlock& to) {
  const uint64_t* const book = codebooks().iq2_xxs.values.data();
  to.d = block.d;
  for (uint32_t group = 0; group < 8; ++group) {
    const uint32_t word = load_word(block.words + 8 * group + 4);
    set_scales(to, group, odd(word >> 28));
    for (uint32_t i = 0; i < 4; ++i)
      store_eight(to.values + 32 * group + 8 * i,
                  with_signs(book[block.words[8 * group + i]], all_signs(word >> (7 * i) & 127)));
  }
}

void pack(const UnpackedBlock& from, BlockIQ2_XXS& block) {
  block.d = from.d;
  for (uint32_t i = 0; i < 32; ++i)
    block.words[8 * (i / 4) + i % 4] =
        static_cast<uint8_t>(index_of(codebooks().iq2_xxs, from.values + 8 * i));
  for (uint32_t group = 0; group < 8; ++group)
    store_word(block.words + 8 * group + 4, signs_and_scale(from, group));
}

void unpack(const BlockIQ2_XS& block, UnpackedBlock& to) {
  const uint64_t* const book = codebooks().iq2_xs.values.data();
  to.d = block.d;
  unpack_scales(block.scales, to);
  for (uint32_t i = 0; i < 32; ++i)
    store_eight(to.values + 8 * i,
                with_signs(book[block.qs[i] & 511], all_signs(block.qs[i] >> 9)));
}

void pack(const UnpackedBlock& from, BlockIQ2_XS& block) {
  block.d = from.d;
  pack_scales(from, block.scales);
  for (uint32_t i = 0; i < 32; ++i)
    block.qs[i] = static_cast<uint16_t>(index_of(codebooks().iq2_xs, from.values + 8 * i) |
                                        (sign_bits(from.values + 8 * i) & 127) << 9);
}

void unpack(const BlockIQ2_S& block, UnpackedBlock& to) {
  const uint64_t* const book = codebooks().iq2_s.values.data();
  to.d = block.d;
  unpack_scales(block.scales, to);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t high = block.qh[i / 4] >> (2 * (i % 4)) & 3;
    store_eight(to.values + 8 * i, with_signs(book[block.qs[i] | high << 8], block.signs[i]));
  }
}

void pack(const UnpackedBlock& from, BlockIQ2_S& block) {
  block = {};
  block.d = from.d;
  pack_scales(from, block.scales);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t index = index_of(codebooks().iq2_s, from.values + 8 * i);
    block.qs[i] = static_cast<uint8_t>(index);
    block.qh[i / 4] = static_cast<uint8_t>(block.qh[i / 4] | index >> 8 << (2 * (i % 4)));
    block.signs[i] = static_cast<uint8_t>(sign_bits(from.values + 8 * i));
  }
}

void unpack(const BlockIQ3_XXS& block, UnpackedBlock& to) {
  const uint64_t* const book = codebooks().iq3_xxs.values.data();
  to.d = block.d;
  for (uint32_t group = 0; group < 8; ++group) {
    const uint32_t word = load_word(block.signs_scales + 4 * group);
    set_scales(to, group, odd(word >> 28));
    for (uint32_t i = 0; i < 4; ++i) {
      const uint8_t* qs = block.qs + 8 * group + 2 * i;
      store_eight(to.values + 32 * group + 8 * i,
                  with_signs(two(book, qs[0], qs[1]), all_signs(word >> (7 * i) & 127)));
    }
  }
}

void pack(const UnpackedBlock& from, BlockIQ3_XXS& block) {
  block.d = from.d;
  for (uint32_t i = 0; i < 64; ++i)
    block.qs[i] = static_cast<uint8_t>(index_of(codebooks().iq3_xxs, from.values + 4 * i));
  for (uint32_t group = 0; group < 8; ++group)
    store_word(block.signs_scales + 4 * group, signs_and_scale(from, group));
}

void unpack(const BlockIQ3_S& block, UnpackedBlock& to) {
  const uint64_t* const book = codebooks().iq3_s.values.data();
  to.d = block.d;
  for (uint32_t group = 0; group < 8; ++group)
    set_scales(to, group, odd(block.scales[group / 2] >> (4 * (group % 2)) & 15));
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t high = static_cast<uint32_t>(block.qh[i / 4]) >> (2 * (i % 4));
    store_eight(to.values + 8 * i, with_signs(two(book, block.qs[2 * i] | (high & 1) << 8,
                                                  block.qs[2 * i + 1] | (high & 2) << 7),
                                              block.signs[i]));
  }
}

void pack(const UnpackedBlock& from, BlockIQ3_S& block) {
  block = {};
  block.d = from.d;
  for (uint32_t i = 0; i < 4; ++i)
    block.scales[i] =
        static_cast<uint8_t>(code_of(from.scales[4 * i]) | code_of(from.scales[4 * i + 2]) << 4);
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t index = index_of(codebooks().iq3_s, from.values + 4 * i);
    block.qs[i] = static_cast<uint8_t>(index);
    block.qh[i / 8] = static_cast<uint8_t>(block.qh[i / 8] | index >> 8 << (i % 8));
  }
  for (uint32_t i = 0; i < 32; ++i)
    block.signs[i] = static_cast<uint8_t>(sign_bits(from.values + 8 * i));
}

void unpack(const BlockIQ1_S& block, UnpackedBlock& to) {
  const uint64_t* const book = codebooks().iq1.values.data();
  to.d = block.d;
  for (uint32_t group = 0; group < 8; ++group) {
    const uint32_t qh = block.qh[group];
    set_scales(to, group, odd(qh >> 12 & 7));
    for (uint32_t i = 0; i < 4; ++i)
      store_eight(to.values + 32 * group + 8 * i,
                  iq1_values(book, block.qs[4 * group + i] | (qh >> (3 * i) & 7) << 8, qh >> 15));
  }
}

void pack(const UnpackedBlock& from, BlockIQ1_S& block) {
  block.d = from.d;
  for (uint32_t group = 0; group < 8; ++group) {
    uint32_t qh = code_of(from.scales[2 * group]) << 12;
    for (uint32_t i = 0; i < 4; ++i) {
      const Iq1Entry entry = iq1_entry(from.values + 32 * group + 8 * i);
      block.qs[4 * group + i] = static_cast<uint8_t>(entry.index);
      qh |= entry.index >> 8 << (3 * i);
      if (entry.subtract) qh |= 0x8000u;
    }
    block.qh[group] = static_cast<uint16_t>(qh);
  }
}

void unpack(const BlockIQ1_M& block, UnpackedBlock& to) {
  const uint64_t* const book = codebooks().iq1.values.data();
  uint32_t d = 0;
  for (uint32_t i = 0; i < 4; ++i) d |= static_cast<uint32_t>(block.scales[i] >> 12) << (4 * i);
  to.d = static_cast<uint16_t>(d);
  for (uint32_t i = 0; i < 16; ++i) to.scales[i] = odd(block.scales[i / 4] >> (3 * (i % 4)) & 7);
  for (uint32_t i = 0; i < 32; ++i) {
    const uint32_t high = block.qh[i / 2] >> (4 * (i % 2)) & 15;
    store_eight(to.values + 8 * i, iq1_values(book, block.qs[i] | (high & 7) << 8, high >> 3));
  }
}

void pack(const UnpackedBlock& from, BlockIQ1_M& block) {
  block = {};
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t scales = static_cast<uint32_t>(from.d >> (4 * i) & 15) << 12;
    for (uint32_t j = 0; j < 4; ++j) scales |= code_of(from.scales[4 * i + j]) << (3 * j);
    block.scales[i] = static_cast<uint16_t>(scales);
  }
  for (uint32_t i = 0; i < 32; ++i) {
    const Iq1Entry entry = iq1_entry(from.values + 8 * i);
    block.qs[i] = static_cast<uint8_t>(entry.index);
    const uint32_t high = entry.index >> 8 | static_cast<uint32_t>(entry.subtract) << 3;
    block.qh[i / 2] = static_cast<uint8_t>(block.qh[i / 2] | high << (4 * (i % 2)));
  }
}

namespace {

// Each run of tq1_0: `bytes` bytes hold `digits` digits each.
struct TernaryRun {
  uint32_t byte, bytes, digits, element;
};
constexpr TernaryRun kTernaryRuns[] = {{0, 32, 5, 0}, {32, 16, 5, 160}, {48, 4, 4, 240}};

}  // namespace

namespace {

template <uint32_t kRun>
void unpack_ternary(const uint8_t* packed, int8_t* values) {
  constexpr TernaryRun run = kTernaryRuns[kRun];
  constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
  for (uint32_t n = 0; n < run.digits; ++n)
    for (uint32_t i = 0; i < run.bytes; ++i) {
      const auto fraction = static_cast<uint8_t>(packed[run.byte + i] * kPowers[n]);
      values[run.element + run.bytes * n + i] = static_cast<int8_t>((fraction * 3 >> 8) - 1);
    }
}

}  // namespace

void unpack(const BlockTQ1_0& block, UnpackedBlock& to) {
  to.d = block.d;
  std::memset(to.scales, 1, 16);
  uint8_t packed[52];
  std::memcpy(packed, &block, 52);
  unpack_ternary<0>(packed, to.values);
  unpack_ternary<1>(packed, to.values);
  unpack_ternary<2>(packed, to.values);
}

void pack(const UnpackedBlock& from, BlockTQ1_0& block) {
  uint8_t packed[52];
  for (const TernaryRun& run : kTernaryRuns)
    for (uint32_t i = 0; i < run.bytes; ++i) {
      uint32_t number = 0;
      for (uint32_t n = 0; n < 5; ++n) {
        const int32_t value = n < run.digits ? from.values[run.element + run.bytes * n + i] + 1 : 0;
        number = number * 3 + static_cast<uint32_t>(value);
      }
      packed[run.byte + i] = static_cast<uint8_t>((number * 256 + 242) / 243);
    }
  std::memcpy(&block, packed, 52);
  block.d = from.d;
}

void unpack(const BlockTQ2_0& block, UnpackedBlock& to) {
  to.d = block.d;
  std::memset(to.scales, 1, 16);
  for (uint32_t part = 0; part < 8; ++part)
    for (uint32_t i = 0; i < 32; ++i)
      to.values[32 * part + i] =
          static_cast<int8_t>((block.qs[32 * (part / 4) + i] >> (2 * (part % 4)) & 3) - 1);
}

void pack(const UnpackedBlock& from, BlockTQ2_0& block) {
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t i = 0; i < 32; ++i) {
      uint32_t byte = 0;
      for (uint32_t part = 0; part < 4; ++part)
        byte |= static_cast<uint32_t>(from.values[128 * half + 32 * part + i] + 1) << (2 * part);
      block.qs[32 * half + i] = static_cast<uint8_t>(byte);
    }
  block.d = from.d;
}

}  // namespace prism
