// The file layouts of GGUF's block-quantised types: the meaning of every byte of a block.
//
// The formula above each struct gives element e of a block, counted from 0 along the row. Fields
// are little-endian; f16 fields hold the bits of a half. No struct has padding, so an array of them
// is a row as stored in the file; a pointer to blocks must be aligned to 2 bytes (mxfp4, nvfp4: 1).
// The types with codebooks and the ternary ones are in base/types/unpacked_block.h.
#pragma once

#include <bit>
#include <cstdint>

#include "base/types/unpacked_block.h"
#include "prism/element_type.h"

namespace prism {

static_assert(std::endian::native == std::endian::little, "block layouts are read in place");

// x[e] = d * (q - 8), 4-bit q: qs[e] bits 0..3 for e < 16, qs[e - 16] bits 4..7 for e >= 16.
struct BlockQ4_0 {
  static constexpr BlockType kType = BlockType::q4_0;
  static constexpr uint32_t kElements = 32;
  uint16_t d;  // f16 scale
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18);

// x[e] = d * q + m, q as in q4_0.
struct BlockQ4_1 {
  static constexpr BlockType kType = BlockType::q4_1;
  static constexpr uint32_t kElements = 32;
  uint16_t d;  // f16 scale
  uint16_t m;  // f16 offset, added
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

// x[e] = d * (q - 16), 5-bit q: bits 0..3 as in q4_0, bit 4 is bit e of qh read as one 32-bit word.
struct BlockQ5_0 {
  static constexpr BlockType kType = BlockType::q5_0;
  static constexpr uint32_t kElements = 32;
  uint16_t d;     // f16 scale
  uint8_t qh[4];  // not aligned to a word: bit e is qh[e / 8] >> (e % 8) & 1
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_0) == 22);

// x[e] = d * q + m, q as in q5_0.
struct BlockQ5_1 {
  static constexpr BlockType kType = BlockType::q5_1;
  static constexpr uint32_t kElements = 32;
  uint16_t d;  // f16 scale
  uint16_t m;  // f16 offset, added
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24);

// x[e] = d * qs[e].
struct BlockQ8_0 {
  static constexpr BlockType kType = BlockType::q8_0;
  static constexpr uint32_t kElements = 32;
  uint16_t d;  // f16 scale
  int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

// x[e] = (d * scale) * q - (dmin * min); each 16 elements share a scale and min (index e / 16).
// 2-bit q: qs[32 * (e / 128) + e % 32] >> (2 * (e / 32 % 4)) & 3.
struct BlockQ2_K {
  static constexpr BlockType kType = BlockType::q2_k;
  static constexpr uint32_t kElements = 256;
  uint8_t scales[16];  // [e / 16]: bits 0..3 the scale, bits 4..7 the min
  uint8_t qs[64];
  uint16_t d;     // f16 scale of the scales
  uint16_t dmin;  // f16 scale of the mins
};
static_assert(sizeof(BlockQ2_K) == 84);

// x[e] = (d * (scale - 32)) * (q - 4), 3-bit q: bits 0..1 as in q2_k, bit 2 is hmask[e % 32] >> (e
// / 32) & 1. The 16 6-bit scales, index i = e / 16, are packed: see q3_k_scale.
struct BlockQ3_K {
  static constexpr BlockType kType = BlockType::q3_k;
  static constexpr uint32_t kElements = 256;
  uint8_t hmask[32];
  uint8_t qs[64];
  // Bits 0..3 of scale i: scales[i % 8] >> (4 * (i / 8)); bits 4..5: scales[8 + i % 4] >> (2 * (i /
  // 4)).
  uint8_t scales[12];
  uint16_t d;  // f16 scale of the scales
};
static_assert(sizeof(BlockQ3_K) == 110);

// x[e] = (d * scale) * q - (dmin * min); each 32 elements share a scale and min (index e / 32).
// 4-bit q: qs[32 * (e / 64) + e % 32] >> (4 * (e / 32 % 2)) & 15.
// The eight 6-bit scales and mins are packed: see k_scale_min.
struct BlockQ4_K {
  static constexpr BlockType kType = BlockType::q4_k;
  static constexpr uint32_t kElements = 256;
  uint16_t d;     // f16 scale of the scales
  uint16_t dmin;  // f16 scale of the mins
  // For i < 4: scale i is scales[i] & 63 and min i is scales[i + 4] & 63. For i >= 4: bits 0..3 of
  // scale i are the low half of scales[i + 4] and those of min i its high half; bits 4..5 of scale
  // i are the top two bits of scales[i - 4] and those of min i the top two bits of scales[i].
  uint8_t scales[12];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ4_K) == 144);

// As q4_k with 5-bit q: bit 4 is qh[e % 32] >> (e / 32) & 1.
struct BlockQ5_K {
  static constexpr BlockType kType = BlockType::q5_k;
  static constexpr uint32_t kElements = 256;
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ5_K) == 176);

// x[e] = (d * scales[e / 16]) * (q - 32), 6-bit q. With h = e / 128, j = e / 32 % 4 and l = e % 32:
// bits 0..3 are ql[64 * h + 32 * (j % 2) + l] >> (4 * (j / 2)) & 15, bits 4..5 are qh[32 * h + l]
// >> (2 * j) & 3.
struct BlockQ6_K {
  static constexpr BlockType kType = BlockType::q6_k;
  static constexpr uint32_t kElements = 256;
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;  // f16 scale of the scales
};
static_assert(sizeof(BlockQ6_K) == 210);

// x[e] = d * kIq4Values[q], q as in q4_0.
struct BlockIQ4_NL {
  static constexpr BlockType kType = BlockType::iq4_nl;
  static constexpr uint32_t kElements = 32;
  uint16_t d;  // f16 scale
  uint8_t qs[16];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// x[e] = (d * (scale - 32)) * kIq4Values[q]; each 32 elements share a scale (index i = e / 32).
// 4-bit q: qs[16 * (e / 32) + e % 16] >> (4 * (e / 16 % 2)) & 15.
struct BlockIQ4_XS {
  static constexpr BlockType kType = BlockType::iq4_xs;
  static constexpr uint32_t kElements = 256;
  uint16_t d;           // f16 scale of the scales
  uint16_t scales_h;    // bits 4..5 of scale i: scales_h >> (2 * i) & 3
  uint8_t scales_l[4];  // bits 0..3 of scale i: scales_l[i / 2] >> (4 * (i % 2)) & 15
  uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// x[e] = 2^(e8m0 - 128) * kMxfp4Values[q], q as in q4_0. (The table holds twice the FP4 values, so
// that they are integers; the exponent is one lower to compensate.)
struct BlockMXFP4 {
  static constexpr BlockType kType = BlockType::mxfp4;
  static constexpr uint32_t kElements = 32;
  uint8_t e8m0;
  uint8_t qs[16];
};
static_assert(sizeof(BlockMXFP4) == 17);

// x[e] = nvfp4_scale(scales[e / 16]) * kMxfp4Values[q]; 4-bit q: with s = e / 16 and i = e % 16,
// qs[8 * s + i % 8] >> (4 * (i / 8)) & 15.
struct BlockNVFP4 {
  static constexpr BlockType kType = BlockType::nvfp4;
  static constexpr uint32_t kElements = 64;
  uint8_t scales[4];
  uint8_t qs[32];
};
static_assert(sizeof(BlockNVFP4) == 36);

// The values of the 4-bit codes in iq4_nl and iq4_xs.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// Twice the values of the 4-bit float codes of mxfp4 and nvfp4 (bit 3 the sign, bits 1..2 the
// exponent, bit 0 the fraction).
inline constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

struct ScaleMin {
  uint8_t scale;  // 0..63
  uint8_t min;    // 0..63
};

// Pair i, 0..7, from the 12 packed scale bytes of q4_k and q5_k.
constexpr ScaleMin k_scale_min(const uint8_t* scales, uint32_t i) {
  if (i < 4)
    return {static_cast<uint8_t>(scales[i] & 63), static_cast<uint8_t>(scales[i + 4] & 63)};
  return {static_cast<uint8_t>((scales[i + 4] & 15) | (scales[i - 4] >> 6 << 4)),
          static_cast<uint8_t>((scales[i + 4] >> 4) | (scales[i] >> 6 << 4))};
}

// The inverse of k_scale_min for all eight pairs.
constexpr void pack_k_scale_min(const ScaleMin* pairs, uint8_t* scales) {
  for (uint32_t i = 0; i < 4; ++i) {
    scales[i] = static_cast<uint8_t>(pairs[i].scale | (pairs[i + 4].scale >> 4 << 6));
    scales[i + 4] = static_cast<uint8_t>(pairs[i].min | (pairs[i + 4].min >> 4 << 6));
    scales[i + 8] =
        static_cast<uint8_t>((pairs[i + 4].scale & 15) | ((pairs[i + 4].min & 15) << 4));
  }
}

// Scale i, 0..15, from the 12 packed scale bytes of q3_k: 0..63, biased by 32.
constexpr uint8_t q3_k_scale(const uint8_t* scales, uint32_t i) {
  return static_cast<uint8_t>(((scales[i % 8] >> (4 * (i / 8))) & 15) |
                              (((scales[8 + i % 4] >> (2 * (i / 4))) & 3) << 4));
}

// The inverse of q3_k_scale for all sixteen scales.
constexpr void pack_q3_k_scales(const uint8_t* from, uint8_t* scales) {
  for (uint32_t i = 0; i < 8; ++i)
    scales[i] = static_cast<uint8_t>((from[i] & 15) | ((from[i + 8] & 15) << 4));
  for (uint32_t i = 0; i < 4; ++i)
    scales[8 + i] = static_cast<uint8_t>((from[i] >> 4) | (from[i + 4] >> 4 << 2) |
                                         (from[i + 8] >> 4 << 4) | (from[i + 12] >> 4 << 6));
}

// Scale i, 0..7, of iq4_xs: 0..63, biased by 32.
constexpr uint8_t iq4_xs_scale(const BlockIQ4_XS& block, uint32_t i) {
  return static_cast<uint8_t>(((block.scales_l[i / 2] >> (4 * (i % 2))) & 15) |
                              (((block.scales_h >> (2 * i)) & 3) << 4));
}

// 2^(e8m0 - 128), the scale of an mxfp4 block; the two smallest are subnormal. Code 255 is 2^127,
// as files use it.
inline float mxfp4_scale(uint8_t e8m0) {
  const uint32_t bits = e8m0 < 2 ? 0x00200000u << e8m0 : static_cast<uint32_t>(e8m0 - 1) << 23;
  return std::bit_cast<float>(bits);
}

// Half the value of an unsigned 8-bit float (4 bits of exponent, 3 of fraction), to go with twice
// the FP4 values. The top bit is ignored, and code 127 is 0.
inline float nvfp4_scale(uint8_t code) {
  if (code == 127) return 0;
  const uint32_t bits = code & 127u;
  if (bits < 8) return static_cast<float>(bits) * 0x1p-10f;
  return std::bit_cast<float>((bits << 20) + (119u << 23));
}

// Calls work with a null pointer to the block struct of a type: with_block(type, []<class
// Block>(Block*) { ... });
template <class Work>
decltype(auto) with_block(BlockType type, Work&& work) {
  switch (type) {
    case BlockType::q4_0:
      return work(static_cast<BlockQ4_0*>(nullptr));
    case BlockType::q4_1:
      return work(static_cast<BlockQ4_1*>(nullptr));
    case BlockType::q5_0:
      return work(static_cast<BlockQ5_0*>(nullptr));
    case BlockType::q5_1:
      return work(static_cast<BlockQ5_1*>(nullptr));
    case BlockType::q8_0:
      return work(static_cast<BlockQ8_0*>(nullptr));
    case BlockType::q2_k:
      return work(static_cast<BlockQ2_K*>(nullptr));
    case BlockType::q3_k:
      return work(static_cast<BlockQ3_K*>(nullptr));
    case BlockType::q4_k:
      return work(static_cast<BlockQ4_K*>(nullptr));
    case BlockType::q5_k:
      return work(static_cast<BlockQ5_K*>(nullptr));
    case BlockType::q6_k:
      return work(static_cast<BlockQ6_K*>(nullptr));
    case BlockType::iq4_nl:
      return work(static_cast<BlockIQ4_NL*>(nullptr));
    case BlockType::iq4_xs:
      return work(static_cast<BlockIQ4_XS*>(nullptr));
    case BlockType::mxfp4:
      return work(static_cast<BlockMXFP4*>(nullptr));
    case BlockType::iq1_s:
      return work(static_cast<BlockIQ1_S*>(nullptr));
    case BlockType::iq1_m:
      return work(static_cast<BlockIQ1_M*>(nullptr));
    case BlockType::iq2_xxs:
      return work(static_cast<BlockIQ2_XXS*>(nullptr));
    case BlockType::iq2_xs:
      return work(static_cast<BlockIQ2_XS*>(nullptr));
    case BlockType::iq2_s:
      return work(static_cast<BlockIQ2_S*>(nullptr));
    case BlockType::iq3_xxs:
      return work(static_cast<BlockIQ3_XXS*>(nullptr));
    case BlockType::iq3_s:
      return work(static_cast<BlockIQ3_S*>(nullptr));
    case BlockType::tq1_0:
      return work(static_cast<BlockTQ1_0*>(nullptr));
    case BlockType::tq2_0:
      return work(static_cast<BlockTQ2_0*>(nullptr));
    case BlockType::nvfp4:
      break;
  }
  return work(static_cast<BlockNVFP4*>(nullptr));
}

}  // namespace prism
