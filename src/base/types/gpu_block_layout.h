// The layout of block-quantised tensors on GPUs: each row is split into planes that are read in
// 16-byte words.
//
// A row stores its planes one after the other: quants, high bits, scales, factors. Every plane
// begins at a multiple of 16 bytes and every row at a multiple of 32 (a sector, the smallest GPU
// memory transaction); padding is zero. Rows are independent, so a slice of rows is a slice of the
// bytes, and address(row, plane) = row * row_bytes + plane.offset. Below, `e` is the column of an
// element, counted from 0; words are 32 bits, little-endian; "word w" of a plane counts from the
// plane's start in the row.
//
// Quants (element e of the row):
//   8 bits  byte e, signed. 16 bytes hold 16 elements in order.
//   4 bits  word 4 * (e / 32) + e % 16 / 4, bits 8 * (e % 4) + 4 * (e / 16 % 2). 16 bytes hold
//           32 elements: in word k, 0..3, w & 0x0F0F0F0F gives elements 4k..4k+3 and (w >> 4) &
//           0x0F0F0F0F gives elements 16+4k..16+4k+3, as bytes. To multiply by 32 activation
//           bytes in two 16-byte loads a and b: dot4(low of word k, a[k]), dot4(high of word k,
//           b[k]).
//   2 bits  word e / 16, bits 8 * (e % 4) + 2 * (e % 16 / 4). 16 bytes hold 64 elements: in
//           word k, (w >> 2m) & 0x03030303, m 0..3, gives elements 16k+4m..16k+4m+3: one word
//           for each 16-byte load of activations.
// High bits (above those in the quants plane; one plane, absent for most types):
//   1 bit   word e / 32, bit 8 * (e % 4) + e % 32 / 4. (w >> m) & 0x01010101, m 0..7, gives
//           elements 4m..4m+3. For word k of the 4-bit quants, (w << (4 - k)) & 0x10101010
//           completes the low nibbles (m = k) and (w >> k) & 0x10101010 the high ones (m = 4 +
//           k).
//   2 bits  as the 2-bit quants: word e / 16. For word k of the 4-bit quants of 32 elements,
//           ((w >> 2k) & 0x03030303) << 4 completes the low nibbles with w = word 2 * (e / 32)
//           and the high ones with w = word 2 * (e / 32) + 1.
// Scales (small integers, one for 16 or 32 elements):
//   i8      byte e / scale_elements, signed, without the file's bias of 32.
//   ue4m3   byte e / 16: a small float (nvfp4_scale of base/types/block_formats.h).
//   pair4   byte e / 16: bits 0..3 the scale, bits 4..7 the min (as in the file).
//   header  16 bytes for 256 elements, word 4 * (e / 256) + ...: word 0 is the pair of f16 d
//           (low half) and dmin (high half). For group i = e / 32 % 8 of 32 elements: scale =
//           (word 1 >> 4i & 15) | (word 3 >> 4i & 3) << 4 and min = (word 2 >> 4i & 15) | (word
//           3 >> 4i & 12) << 2. Four at once as bytes, i = 0, 2, 4, 6: (w1 & 0x0F0F0F0F) | (w3
//           << 4 & 0x30303030), (w2 & 0x0F0F0F0F) | (w3 << 2 & 0x30303030); and i = 1, 3, 5, 7:
//           (w1 >> 4 & 0x0F0F0F0F) | (w3 & 0x30303030), (w2 >> 4 & 0x0F0F0F0F) | (w3 >> 2 &
//           0x30303030).
// Factors (floats, one for 32 or 256 elements):
//   f16     half e / factor_elements: d.
//   pair    word e / factor_elements: f16 d in the low half, f16 m (q4_1, q5_1) or dmin (q2_k)
//           in the high half.
//   e8m0    byte e / 32: an exponent; d = 2^(byte - 128) (mxfp4_scale of
//   base/types/block_formats.h).
// Types with scales of ue4m3 have no factors: d = 1.
//
// An element, with v = q - zero (or value_table(values)[q]) and scale = 1 for types without scales:
//   x = (d * 2^exponent * scale) * v             without mins
//   x = (d * scale) * v + m                      q4_1, q5_1
//   x = (d * scale) * v - (dmin * min)           q2_k, q4_k, q5_k
//
//   type    quants high scales      factors   v            bytes per 256 elements (file)
//   q4_0    4      -    -           f16 /32   q - 8        144 (144)
//   q4_1    4      -    -           pair /32  q            160 (160)
//   q5_0    4      1    -           f16 /32   q - 16       176 (176)
//   q5_1    4      1    -           pair /32  q            192 (192)
//   q8_0    8      -    -           f16 /32   q            272 (272)
//   q2_k    2      -    pair4 /16   pair /256 q            84 (84)
//   q3_k    2      1    i8 /16      f16 /256  q - 4        114 (110), 3.6% more
//   q4_k    4      -    header      (header)  q            144 (144)
//   q5_k    4      1    header      (header)  q            176 (176)
//   q6_k    4      2    i8 /16      f16 /256  q - 32       210 (210)
//   iq4_nl  4      -    -           f16 /32   kIq4Values   144 (144)
//   iq4_xs  4      -    i8 /32      f16 /256  kIq4Values   138 (136), 1.5% more
//   mxfp4   4      -    -           e8m0 /32  kMxfp4Values 136 (136)
//   nvfp4   4      -    ue4m3 /16   -         kMxfp4Values 144 (144)
//   iq1_s   2      -    i8 /32      f16 /256  kIq1Values   74 (50), 48% more
//   iq1_m   2      1    i8 /16      f16 /256  kIq1Values   114 (56), 104% more
//   iq2_xxs 2      1    i8 /32      f16 /256  kIq2Values   106 (66), 61% more
//   iq2_xs  2      1    i8 /16      f16 /256  kIq2Values   114 (74), 54% more
//   iq2_s   2      1    i8 /16      f16 /256  kIq2Values   114 (82), 39% more
//   iq3_xxs 4      -    i8 /32      f16 /256  kIq3XxsValues 138 (98), 41% more
//   iq3_s   4      -    i8 /32      f16 /256  kIq3SValues  138 (110), 25% more
//   tq1_0   2      -    -           f16 /256  q - 1        66 (54), 22% more
//   tq2_0   2      -    -           f16 /256  q - 1        66 (66)
// q3_k and iq4_xs grow because their 6-bit scales are stored as bytes, the last ones because their
// elements are stored one by one: a kernel would need the codebook at hand. (iq1_s: where 1/8 is
// subtracted from 32 elements, scale and elements are negated.) Padding adds less than 16 bytes per
// plane and less than 32 per row.
#pragma once

#include <cstdint>
#include <span>

#include "prism/element_type.h"

namespace prism {

class ThreadPool;

enum class ScaleFormat : uint8_t { none, i8, pair4, header, ue4m3 };
enum class FactorFormat : uint8_t { f16, pair, e8m0, in_header, none };
enum class QuantValues : uint8_t { linear, iq4, mxfp4, iq1, iq2, iq3_xxs, iq3_s };

// The values by code, in units of 2^exponent. Codes of 3 bits: bit 2 is in the plane of high bits;
// it is the sign (iq2), or says that 1 is subtracted and not added (iq1).
inline constexpr int8_t kIq1Values[8] = {-7, 1, 9, 0, -9, -1, 7, 0};
inline constexpr int8_t kIq2Values[8] = {8, 25, 43, 0, -8, -25, -43, 0};
inline constexpr int8_t kIq3XxsValues[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                             -4, -12, -20, -28, -36, -44, -52, -62};
inline constexpr int8_t kIq3SValues[16] = {-15, -13, -11, -9, -7, -5, -3, -1,
                                           1,   3,   5,   7,  9,  11, 13, 15};
// Empty for linear ones.
std::span<const int8_t> value_table(QuantValues values);

// The plane contents of a type: everything a kernel is specialised for.
struct PlaneFormat {
  uint8_t quant_bits;  // 2, 4 or 8 (8: signed)
  uint8_t high_bits;   // 0, 1 or 2
  ScaleFormat scales;
  uint8_t scale_elements;  // elements per scale: 16 or 32; 0 for types without scales
  FactorFormat factors;
  uint16_t factor_elements;  // elements per factor: 32 or 256
  QuantValues values;
  uint8_t zero;         // subtracted from q when values are linear
  int8_t exponent = 0;  // of two, times each element

  constexpr bool has_min() const {
    return scales == ScaleFormat::pair4 || scales == ScaleFormat::header;
  }
  constexpr bool has_offset() const {  // x = d * q + m
    return factors == FactorFormat::pair && scales == ScaleFormat::none;
  }
};

constexpr PlaneFormat plane_format(BlockType type) {
  using S = ScaleFormat;
  using F = FactorFormat;
  using V = QuantValues;
  switch (type) {
    case BlockType::q4_0:
      return {4, 0, S::none, 0, F::f16, 32, V::linear, 8};
    case BlockType::q4_1:
      return {4, 0, S::none, 0, F::pair, 32, V::linear, 0};
    case BlockType::q5_0:
      return {4, 1, S::none, 0, F::f16, 32, V::linear, 16};
    case BlockType::q5_1:
      return {4, 1, S::none, 0, F::pair, 32, V::linear, 0};
    case BlockType::q8_0:
      return {8, 0, S::none, 0, F::f16, 32, V::linear, 0};
    case BlockType::q2_k:
      return {2, 0, S::pair4, 16, F::pair, 256, V::linear, 0};
    case BlockType::q3_k:
      return {2, 1, S::i8, 16, F::f16, 256, V::linear, 4};
    case BlockType::q4_k:
      return {4, 0, S::header, 32, F::in_header, 256, V::linear, 0};
    case BlockType::q5_k:
      return {4, 1, S::header, 32, F::in_header, 256, V::linear, 0};
    case BlockType::q6_k:
      return {4, 2, S::i8, 16, F::f16, 256, V::linear, 32};
    case BlockType::iq4_nl:
      return {4, 0, S::none, 0, F::f16, 32, V::iq4, 0};
    case BlockType::iq4_xs:
      return {4, 0, S::i8, 32, F::f16, 256, V::iq4, 0};
    case BlockType::mxfp4:
      return {4, 0, S::none, 0, F::e8m0, 32, V::mxfp4, 0};
    case BlockType::iq1_s:
      return {2, 0, S::i8, 32, F::f16, 256, V::iq1, 0, -3};
    case BlockType::iq1_m:
      return {2, 1, S::i8, 16, F::f16, 256, V::iq1, 0, -3};
    case BlockType::iq2_xxs:
      return {2, 1, S::i8, 32, F::f16, 256, V::iq2, 0, -3};
    case BlockType::iq2_xs:
    case BlockType::iq2_s:
      return {2, 1, S::i8, 16, F::f16, 256, V::iq2, 0, -3};
    case BlockType::iq3_xxs:
      return {4, 0, S::i8, 32, F::f16, 256, V::iq3_xxs, 0, -2};
    case BlockType::iq3_s:
      return {4, 0, S::i8, 32, F::f16, 256, V::iq3_s, 0};
    case BlockType::tq1_0:
    case BlockType::tq2_0:
      return {2, 0, S::none, 0, F::f16, 256, V::linear, 1};
    case BlockType::nvfp4:
      return {4, 0, S::ue4m3, 16, F::none, 64, V::mxfp4, 0};
  }
  return {};
}

// One plane inside a row.
struct Plane {
  uint64_t offset = 0;  // from the start of the row, a multiple of 16
  uint64_t bytes = 0;   // without padding; 0 if the type has no such plane
};

struct GpuBlockLayout {
  BlockType type{};
  PlaneFormat format{};
  uint64_t rows = 0, columns = 0;
  uint64_t row_bytes = 0;  // distance between rows, a multiple of 32
  Plane quants, high, scales, factors;
  uint64_t bytes() const { return rows * row_bytes; }
};

// Throws an Error if columns is not a multiple of the type's block.
GpuBlockLayout gpu_block_layout(BlockType type, uint64_t rows, uint64_t columns);

// blocks: layout.rows consecutive rows as stored in the file; planes: layout.bytes() bytes, all of
// which are written. To convert a range of rows, pass a layout with that many rows and pointers to
// the first.
void to_gpu_layout(const GpuBlockLayout& layout, const void* blocks, void* planes);
void to_gpu_layout(const GpuBlockLayout& layout, const void* blocks, void* planes,
                   ThreadPool& pool);

// The exact inverse: restores the bytes that to_gpu_layout received (of tq1_0: the elements).
void from_gpu_layout(const GpuBlockLayout& layout, const void* planes, void* blocks);
void from_gpu_layout(const GpuBlockLayout& layout, const void* planes, void* blocks,
                     ThreadPool& pool);

// Decodes one element as described above: the reference for kernels that read planes.
float plane_element(const GpuBlockLayout& layout, const void* planes, uint64_t row,
                    uint64_t column);

}  // namespace prism
