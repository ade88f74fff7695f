// Stores the codes of unpacked values, four at a time as the bytes of a word.
#include "base/types/unpacked_planes.h"

#include <algorithm>
#include <cstring>

#include "base/types/words.h"

namespace prism {

namespace {

// iq1 without a plane of high bits has one sign for 32 elements, that of the scale: whether 1 is
// subtracted from the values of a group.
bool subtracts(const PlaneFormat& format, const int8_t* group) {
  return format.values == QuantValues::iq1 && format.high_bits == 0 && (group[0] & 7) == 7;
}

// Planes of 2 bits have 16 elements in a word, planes of 4 bits 32 in four words.
void store_quants(const PlaneFormat& format, const uint8_t* codes, uint8_t* quants) {
  if (format.quant_bits == 2) {
    for (uint32_t w = 0; w < 16; ++w) {
      uint32_t word = 0;
      for (uint32_t m = 0; m < 4; ++m)
        word |= (load_word(codes + 16 * w + 4 * m) & 0x03030303u) << (2 * m);
      store_word(quants + 4 * w, word);
    }
    return;
  }
  for (uint32_t w = 0; w < 32; ++w) {
    const uint8_t* from = codes + 32 * (w / 4) + 4 * (w % 4);
    store_word(quants + 4 * w, load_word(from) | load_word(from + 16) << 4);
  }
}

void load_quants(const PlaneFormat& format, const uint8_t* quants, uint8_t* codes) {
  if (format.quant_bits == 2) {
    for (uint32_t w = 0; w < 16; ++w)
      for (uint32_t m = 0; m < 4; ++m)
        store_word(codes + 16 * w + 4 * m, load_word(quants + 4 * w) >> (2 * m) & 0x03030303u);
    return;
  }
  for (uint32_t w = 0; w < 32; ++w) {
    uint8_t* to = codes + 32 * (w / 4) + 4 * (w % 4);
    const uint32_t word = load_word(quants + 4 * w);
    store_word(to, word & 0x0f0f0f0fu);
    store_word(to + 16, word >> 4 & 0x0f0f0f0fu);
  }
}

}  // namespace

void unpacked_to_planes(const PlaneFormat& format, const UnpackedBlock& block,
                        const UnpackedPlanes<uint8_t>& planes) {
  uint8_t code_of[256] = {};
  const auto table = value_table(format.values);
  for (size_t i = 0; i < table.size(); ++i)
    code_of[static_cast<uint8_t>(table[i])] = static_cast<uint8_t>(i);

  uint8_t codes[256];
  bool negated[8];
  for (uint32_t group = 0; group < 8; ++group) {
    const int8_t* values = block.values + 32 * group;
    negated[group] = subtracts(format, values);
    for (uint32_t i = 0; i < 32; ++i) {
      const int32_t value = negated[group] ? -values[i] : values[i];
      codes[32 * group + i] = table.empty() ? static_cast<uint8_t>(value + format.zero)
                                            : code_of[static_cast<uint8_t>(value)];
    }
  }
  store_quants(format, codes, planes.quants);
  if (format.high_bits == 1)
    for (uint32_t w = 0; w < 8; ++w) {
      uint32_t word = 0;
      for (uint32_t m = 0; m < 8; ++m)
        word |= (load_word(codes + 32 * w + 4 * m) >> 2 & 0x01010101u) << m;
      store_word(planes.high + 4 * w, word);
    }
  for (uint32_t i = 0; format.scale_elements != 0 && i < 256u / format.scale_elements; ++i) {
    const uint32_t at = i * format.scale_elements;
    const int8_t scale = block.scales[at / 16];
    planes.scales[i] = static_cast<uint8_t>(negated[at / 32] ? -scale : scale);
  }
  std::memcpy(planes.factors, &block.d, 2);
}

void unpacked_from_planes(const PlaneFormat& format, const UnpackedPlanes<const uint8_t>& planes,
                          UnpackedBlock& block) {
  uint8_t codes[256];
  load_quants(format, planes.quants, codes);
  if (format.high_bits == 1)
    for (uint32_t w = 0; w < 8; ++w)
      for (uint32_t m = 0; m < 8; ++m) {
        uint8_t* four = codes + 32 * w + 4 * m;
        store_word(four, load_word(four) | (load_word(planes.high + 4 * w) >> m & 0x01010101u)
                                               << 2);
      }
  const auto table = value_table(format.values);
  for (uint32_t e = 0; e < 256; ++e)
    block.values[e] = table.empty() ? static_cast<int8_t>(codes[e] - format.zero) : table[codes[e]];
  std::fill_n(block.scales, 16, int8_t{1});
  for (uint32_t i = 0; format.scale_elements != 0 && i < 16; ++i) {
    const auto scale = static_cast<int8_t>(planes.scales[16 * i / format.scale_elements]);
    block.scales[i] = scale;
    if (scale >= 0) continue;  // only iq1_s stores negative ones
    block.scales[i] = static_cast<int8_t>(-scale);
    for (uint32_t e = 16 * i; e < 16 * i + 16; ++e)
      block.values[e] = static_cast<int8_t>(-block.values[e]);
  }
  std::memcpy(&block.d, planes.factors, 2);
}

}  // namespace prism
