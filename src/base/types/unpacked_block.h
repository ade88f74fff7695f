// GGUF's block types that store indices into codebooks or several ternary digits in a byte, and the
// one form into which all of them unpack.
//
// An index into a codebook stands for four or eight magnitudes at once, so a single element cannot
// be read. Whoever computes with such a type unpacks whole blocks: the CPU's kernels as they go,
// uploads to GPUs once (base/types/gpu_block_layout.h). The conventions are those of
// base/types/block_formats.h.
#pragma once

#include <cstdint>

#include "prism/element_type.h"

namespace prism {

// x[e] = (d * 2^exponent) * scales[e / 16] * values[e]; the exponent is that of the type's
// plane_format. All products are exact in f32.
struct UnpackedBlock {
  uint16_t d;  // f16 bits
  int8_t scales[16];
  alignas(8) int8_t values[256];
};

// Group i = e / 32 has word 2i with four codebook indices of 8 bits, and word 2i + 1: four sets of
// seven signs, and the scale in bits 28..31. The eighth sign makes the number of negative ones
// even. Scale: 2 * code + 1.
struct BlockIQ2_XXS {
  static constexpr BlockType kType = BlockType::iq2_xxs;
  static constexpr uint32_t kElements = 256;
  uint16_t d;
  uint8_t words[64];
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

// Each 8 elements: an index of 9 bits, then seven signs. Each 16 elements: a scale of 4 bits.
struct BlockIQ2_XS {
  static constexpr BlockType kType = BlockType::iq2_xs;
  static constexpr uint32_t kElements = 256;
  uint16_t d;
  uint16_t qs[32];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_XS) == 74);

// Each 8 elements: an index of 8 + 2 bits and eight signs. Each 16 elements: a scale of 4 bits.
struct BlockIQ2_S {
  static constexpr BlockType kType = BlockType::iq2_s;
  static constexpr uint32_t kElements = 256;
  uint16_t d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];  // bits 8..9 of index i: qh[i / 4] >> (2 * (i % 4)) & 3
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_S) == 82);

// Each 4 elements: an index of 8 bits. Signs and scales as in iq2_xxs.
struct BlockIQ3_XXS {
  static constexpr BlockType kType = BlockType::iq3_xxs;
  static constexpr uint32_t kElements = 256;
  uint16_t d;
  uint8_t qs[64];
  uint8_t signs_scales[32];
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

// Each 4 elements: an index of 8 + 1 bits. Each 8: eight signs. Each 32: a scale of 4 bits.
struct BlockIQ3_S {
  static constexpr BlockType kType = BlockType::iq3_s;
  static constexpr uint32_t kElements = 256;
  uint16_t d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
static_assert(sizeof(BlockIQ3_S) == 110);

// Each 8 elements: an index of 8 + 3 bits. Each 32: a scale of 3 bits (12..14 of qh), and whether
// 1/8 is subtracted from all elements (bit 15) or added.
struct BlockIQ1_S {
  static constexpr BlockType kType = BlockType::iq1_s;
  static constexpr uint32_t kElements = 256;
  uint16_t d;
  uint8_t qs[32];
  uint16_t qh[8];  // bits 8..10 of index i: qh[i / 4] >> (3 * (i % 4)) & 7
};
static_assert(sizeof(BlockIQ1_S) == 50);

// Each 8 elements: an index of 8 + 3 bits and the sign of 1/8, a nibble of qh. Each 16: a scale of
// 3 bits. d is in the top nibbles of the scales, the lowest first.
struct BlockIQ1_M {
  static constexpr BlockType kType = BlockType::iq1_m;
  static constexpr uint32_t kElements = 256;
  uint8_t qs[32];
  uint8_t qh[16];
  uint16_t scales[4];  // scale i: scales[i / 4] >> (3 * (i % 4)) & 7
};
static_assert(sizeof(BlockIQ1_M) == 56);

// Five ternary digits in a byte, as the fraction byte / 256 to the base 3, rounded up. An element
// is d times its digit less 1. Digit n of byte i is element 32n + i of the first 160 for i < 32,
// and element 16n + i of the next 80 for the other 16 bytes; qh has four digits: element 4n + i of
// the last 16.
struct BlockTQ1_0 {
  static constexpr BlockType kType = BlockType::tq1_0;
  static constexpr uint32_t kElements = 256;
  uint8_t qs[48];
  uint8_t qh[4];
  uint16_t d;
};
static_assert(sizeof(BlockTQ1_0) == 54);

// x[e] = d * (q - 1), 2-bit q as in q2_k.
struct BlockTQ2_0 {
  static constexpr BlockType kType = BlockType::tq2_0;
  static constexpr uint32_t kElements = 256;
  uint8_t qs[64];
  uint16_t d;
};
static_assert(sizeof(BlockTQ2_0) == 66);

void unpack(const BlockIQ1_S& block, UnpackedBlock& to);
void unpack(const BlockIQ1_M& block, UnpackedBlock& to);
void unpack(const BlockIQ2_XXS& block, UnpackedBlock& to);
void unpack(const BlockIQ2_XS& block, UnpackedBlock& to);
void unpack(const BlockIQ2_S& block, UnpackedBlock& to);
void unpack(const BlockIQ3_XXS& block, UnpackedBlock& to);
void unpack(const BlockIQ3_S& block, UnpackedBlock& to);
void unpack(const BlockTQ1_0& block, UnpackedBlock& to);
void unpack(const BlockTQ2_0& block, UnpackedBlock& to);

// The inverse, bit for bit. (13 values of a byte are no rounded fractions: of tq1_0 the same
// elements come back, not always the same bytes.)
void pack(const UnpackedBlock& from, BlockIQ1_S& block);
void pack(const UnpackedBlock& from, BlockIQ1_M& block);
void pack(const UnpackedBlock& from, BlockIQ2_XXS& block);
void pack(const UnpackedBlock& from, BlockIQ2_XS& block);
void pack(const UnpackedBlock& from, BlockIQ2_S& block);
void pack(const UnpackedBlock& from, BlockIQ3_XXS& block);
void pack(const UnpackedBlock& from, BlockIQ3_S& block);
void pack(const UnpackedBlock& from, BlockTQ1_0& block);
void pack(const UnpackedBlock& from, BlockTQ2_0& block);

template <class Block>
concept UnpackableBlock = requires(const Block& block, UnpackedBlock& to) {
  unpack(block, to);
};

}  // namespace prism
