// Converts rows of blocks to planes and back, and decodes single elements of planes.
//
// A byte of a K-quant packs the bits of one position in several sub-blocks; a word of a plane packs
// bits of one sub-block. The conversion transposes a small square of bit fields, so one function
// serves both directions.
#include "base/types/gpu_block_layout.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <type_traits>

#include <fmt/format.h>

#include "base/system/thread_pool.h"
#include "base/types/block_formats.h"
#include "base/types/unpacked_planes.h"
#include "base/types/words.h"
#include "prism/error.h"

namespace prism {

namespace {

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The addresses of a row's planes; P is uint8_t or const uint8_t.
template <class P>
struct Row {
  P *quants, *high, *scales, *factors;
  Row(const GpuBlockLayout& layout, P* row)
      : quants(row + layout.quants.offset),
        high(row + layout.high.offset),
        scales(row + layout.scales.offset),
        factors(row + layout.factors.offset) {}
};
using ToRow = Row<uint8_t>;
using FromRow = Row<const uint8_t>;

// Two 16-byte units: the low nibbles of both go to the first, the high nibbles to the second.
void transpose_nibbles(const uint8_t* from0, const uint8_t* from1, uint8_t* to0, uint8_t* to1) {
  // Words, not bytes: compilers vectorise the byte loop badly.
  uint64_t a[2], b[2], low[2], high[2];
  std::memcpy(a, from0, 16);
  std::memcpy(b, from1, 16);
  constexpr uint64_t kLow = 0x0f0f0f0f0f0f0f0full;
  for (int i = 0; i < 2; ++i) {
    low[i] = (a[i] & kLow) | (b[i] & kLow) << 4;
    high[i] = (a[i] >> 4 & kLow) | (b[i] & ~kLow);
  }
  std::memcpy(to0, low, 16);
  std::memcpy(to1, high, 16);
}

// 2-bit fields: field j of word m, in each byte, becomes field m of word j. from_step and to_step
// are the distances between words in bytes.
void transpose_pairs(const uint8_t* from, size_t from_step, uint8_t* to, size_t to_step) {
  uint32_t words[4];
  for (uint32_t m = 0; m < 4; ++m) words[m] = load_word(from + m * from_step);
  for (uint32_t j = 0; j < 4; ++j) {
    uint32_t word = 0;
    for (uint32_t m = 0; m < 4; ++m) word |= ((words[m] >> (2 * j)) & 0x03030303u) << (2 * m);
    store_word(to + j * to_step, word);
  }
}

// Bit j of word m, in each byte, becomes bit m of word j; eight consecutive words.
void transpose_bits(const uint8_t* from, uint8_t* to) {
  uint32_t words[8];
  std::memcpy(words, from, 32);
  for (uint32_t j = 0; j < 8; ++j) {
    uint32_t word = 0;
    for (uint32_t m = 0; m < 8; ++m) word |= ((words[m] >> j) & 0x01010101u) << m;
    store_word(to + 4 * j, word);
  }
}

// Converts between bit e (files) and bit 8 * (e % 4) + e / 4 (planes). The multiplications spread
// four bits over four bytes and gather them: no two partial products share a bit.
uint32_t bits_to_plane(uint32_t bits) {
  uint32_t word = 0;
  for (uint32_t m = 0; m < 8; ++m)
    word |= ((((bits >> (4 * m)) & 15) * 0x00204081u) & 0x01010101u) << m;
  return word;
}

uint32_t bits_from_plane(uint32_t word) {
  uint32_t bits = 0;
  for (uint32_t m = 0; m < 8; ++m)
    bits |= (((((word >> m) & 0x01010101u) * 0x01020408u) >> 24) & 15) << (4 * m);
  return bits;
}

// The 64 bytes of 2-bit quants in q2_k and q3_k, and of 2-bit high bits in q6_k: the fields of four
// sub-blocks for each half (128 elements) and each 16 positions.
void pairs_to_plane(const uint8_t* block, uint8_t* plane) {
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t part = 0; part < 2; ++part)
      transpose_pairs(block + 32 * half + 16 * part, 4, plane + 32 * half + 4 * part, 8);
}

void pairs_from_plane(const uint8_t* plane, uint8_t* block) {
  for (uint32_t half = 0; half < 2; ++half)
    for (uint32_t part = 0; part < 2; ++part)
      transpose_pairs(plane + 32 * half + 4 * part, 8, block + 32 * half + 16 * part, 4);
}

// 128 bytes of nibbles in q4_k and q5_k: sub-blocks 2c and 2c + 1 share the bytes 32c..32c + 31.
void k_nibbles(const uint8_t* from, uint8_t* to) {
  for (uint32_t c = 0; c < 4; ++c)
    transpose_nibbles(from + 32 * c, from + 32 * c + 16, to + 32 * c, to + 32 * c + 16);
}

// q6_k, with h the half and o 0 or 1: sub-blocks 4h + o and 4h + o + 2 share 32 bytes.
void q6_k_nibbles_to_plane(const uint8_t* block, uint8_t* plane) {
  for (uint32_t h = 0; h < 2; ++h)
    for (uint32_t o = 0; o < 2; ++o) {
      const uint8_t* from = block + 64 * h + 32 * o;
      uint8_t* to = plane + 64 * h + 16 * o;
      transpose_nibbles(from, from + 16, to, to + 32);
    }
}

void q6_k_nibbles_from_plane(const uint8_t* plane, uint8_t* block) {
  for (uint32_t h = 0; h < 2; ++h)
    for (uint32_t o = 0; o < 2; ++o) {
      const uint8_t* from = plane + 64 * h + 16 * o;
      uint8_t* to = block + 64 * h + 32 * o;
      transpose_nibbles(from, from + 32, to, to + 16);
    }
}

// Converts between four bytes below 16 and four nibbles in the low half of a word.
uint32_t bytes_to_nibbles(uint32_t bytes) {
  const uint32_t pairs = (bytes | bytes >> 4) & 0x00ff00ffu;
  return (pairs | pairs >> 8) & 0xffffu;
}

uint32_t nibbles_to_bytes(uint32_t nibbles) {
  const uint32_t pairs = (nibbles | nibbles << 8) & 0x00ff00ffu;
  return (pairs | pairs << 4) & 0x0f0f0f0fu;
}

// The header of q4_k and q5_k: the pair of factors, then low and high bits of scales and mins. The
// file's 12 bytes are three words a, b, c of four bytes: a holds scales 0..3 and, above them, the
// high bits of scales 4..7; b holds the same for the mins; c the low bits of scales and mins 4..7.
void header_to_plane(uint16_t d, uint16_t dmin, const uint8_t* scales, uint8_t* header) {
  const uint32_t a = load_word(scales), b = load_word(scales + 4), c = load_word(scales + 8);
  const auto join = [](uint32_t first, uint32_t second) {
    return bytes_to_nibbles(first & 0x0f0f0f0fu) | bytes_to_nibbles(second & 0x0f0f0f0fu) << 16;
  };
  const auto high = [&](uint32_t shift) {
    return (a >> shift & 0x03030303u) | (b >> shift & 0x03030303u) << 2;
  };
  const uint32_t words[4] = {d | static_cast<uint32_t>(dmin) << 16, join(a, c), join(b, c >> 4),
                             join(high(4), high(6))};
  std::memcpy(header, words, 16);
}

ScaleMin header_pair(const uint8_t* header, uint32_t i) {
  const uint32_t w1 = load_word(header + 4) >> (4 * i), w2 = load_word(header + 8) >> (4 * i),
                 w3 = load_word(header + 12) >> (4 * i);
  return {static_cast<uint8_t>((w1 & 15) | (w3 & 3) << 4),
          static_cast<uint8_t>((w2 & 15) | (w3 & 12) << 2)};
}

template <class Block>
void header_from_plane(const uint8_t* header, Block& block) {
  const uint32_t factors = load_word(header);
  block.d = static_cast<uint16_t>(factors);
  block.dmin = static_cast<uint16_t>(factors >> 16);
  const uint32_t scale = load_word(header + 4), min = load_word(header + 8);
  const uint32_t high = load_word(header + 12);
  const uint32_t high0 = nibbles_to_bytes(high & 0xffffu), high4 = nibbles_to_bytes(high >> 16);
  const auto above = [&](uint32_t shift) {
    return (high0 >> shift & 0x03030303u) << 4 | (high4 >> shift & 0x03030303u) << 6;
  };
  store_word(block.scales, nibbles_to_bytes(scale & 0xffffu) | above(0));
  store_word(block.scales + 4, nibbles_to_bytes(min & 0xffffu) | above(2));
  store_word(block.scales + 8, nibbles_to_bytes(scale >> 16) | nibbles_to_bytes(min >> 16) << 4);
}

// 64 elements of nvfp4: the file has elements i and i + 8 of 16 in a byte, the plane elements i and
// i + 16 of 32. Each exchange of two nibbles is its own inverse.
void nvfp4_nibbles(const uint8_t* from, uint8_t* to) {
  for (const uint32_t unit : {0, 16})
    for (uint32_t i = unit; i < unit + 8; ++i) {
      to[i] = static_cast<uint8_t>((from[i] & 15) | (from[8 + i] & 15) << 4);
      to[8 + i] = static_cast<uint8_t>(from[i] >> 4 | (from[8 + i] & 0xf0));
    }
}

// The position of block b, 256 elements, in the planes of a row.
template <class Row>
auto unpacked_at(const PlaneFormat& format, const Row& row, uint64_t b) {
  return UnpackedPlanes<std::remove_pointer_t<decltype(row.quants)>>{
      row.quants + 32 * format.quant_bits * b, row.high + 32 * format.high_bits * b,
      row.scales + (format.scale_elements ? 256 / format.scale_elements * b : 0),
      row.factors + 2 * b};
}

// Converts block b of a row to its positions in the planes.
template <class Block>
void block_to_planes(const Block& block, const ToRow& row, uint64_t b) {
  if constexpr (UnpackableBlock<Block>) {
    UnpackedBlock unpacked;
    unpack(block, unpacked);
    constexpr PlaneFormat kFormat = plane_format(Block::kType);
    unpacked_to_planes(kFormat, unpacked, unpacked_at(kFormat, row, b));
  } else if constexpr (std::is_same_v<Block, BlockNVFP4>) {
    nvfp4_nibbles(block.qs, row.quants + 32 * b);
    std::memcpy(row.scales + 4 * b, block.scales, 4);
  } else if constexpr (std::is_same_v<Block, BlockQ8_0>) {
    std::memcpy(row.quants + 32 * b, block.qs, 32);
    std::memcpy(row.factors + 2 * b, &block.d, 2);
  } else if constexpr (Block::kElements == 32) {
    std::memcpy(row.quants + 16 * b, block.qs, 16);
    if constexpr (requires { block.qh; })
      store_word(row.high + 4 * b, bits_to_plane(load_word(block.qh)));
    if constexpr (requires { block.e8m0; })
      row.factors[b] = block.e8m0;
    else if constexpr (requires { block.m; })
      store_word(row.factors + 4 * b, block.d | static_cast<uint32_t>(block.m) << 16);
    else
      std::memcpy(row.factors + 2 * b, &block.d, 2);
  } else if constexpr (std::is_same_v<Block, BlockQ2_K>) {
    pairs_to_plane(block.qs, row.quants + 64 * b);
    std::memcpy(row.scales + 16 * b, block.scales, 16);
    store_word(row.factors + 4 * b, block.d | static_cast<uint32_t>(block.dmin) << 16);
  } else if constexpr (std::is_same_v<Block, BlockQ3_K>) {
    pairs_to_plane(block.qs, row.quants + 64 * b);
    transpose_bits(block.hmask, row.high + 32 * b);
    for (uint32_t i = 0; i < 16; ++i)
      row.scales[16 * b + i] = static_cast<uint8_t>(q3_k_scale(block.scales, i) - 32);
    std::memcpy(row.factors + 2 * b, &block.d, 2);
  } else if constexpr (std::is_same_v<Block, BlockQ4_K> || std::is_same_v<Block, BlockQ5_K>) {
    k_nibbles(block.qs, row.quants + 128 * b);
    if constexpr (requires { block.qh; }) transpose_bits(block.qh, row.high + 32 * b);
    header_to_plane(block.d, block.dmin, block.scales, row.scales + 16 * b);
  } else if constexpr (std::is_same_v<Block, BlockQ6_K>) {
    q6_k_nibbles_to_plane(block.ql, row.quants + 128 * b);
    pairs_to_plane(block.qh, row.high + 64 * b);
    std::memcpy(row.scales + 16 * b, block.scales, 16);
    std::memcpy(row.factors + 2 * b, &block.d, 2);
  } else {
    static_assert(std::is_same_v<Block, BlockIQ4_XS>);
    std::memcpy(row.quants + 128 * b, block.qs, 128);
    for (uint32_t i = 0; i < 8; ++i)
      row.scales[8 * b + i] = static_cast<uint8_t>(iq4_xs_scale(block, i) - 32);
    std::memcpy(row.factors + 2 * b, &block.d, 2);
  }
}

template <class Block>
void block_from_planes(const FromRow& row, uint64_t b, Block& block) {
  if constexpr (UnpackableBlock<Block>) {
    UnpackedBlock unpacked;
    constexpr PlaneFormat kFormat = plane_format(Block::kType);
    unpacked_from_planes(kFormat, unpacked_at(kFormat, row, b), unpacked);
    pack(unpacked, block);
  } else if constexpr (std::is_same_v<Block, BlockNVFP4>) {
    nvfp4_nibbles(row.quants + 32 * b, block.qs);
    std::memcpy(block.scales, row.scales + 4 * b, 4);
  } else if constexpr (std::is_same_v<Block, BlockQ8_0>) {
    std::memcpy(block.qs, row.quants + 32 * b, 32);
    std::memcpy(&block.d, row.factors + 2 * b, 2);
  } else if constexpr (Block::kElements == 32) {
    std::memcpy(block.qs, row.quants + 16 * b, 16);
    if constexpr (requires { block.qh; })
      store_word(block.qh, bits_from_plane(load_word(row.high + 4 * b)));
    if constexpr (requires { block.e8m0; }) {
      block.e8m0 = row.factors[b];
    } else if constexpr (requires { block.m; }) {
      std::memcpy(&block.d, row.factors + 4 * b, 2);
      std::memcpy(&block.m, row.factors + 4 * b + 2, 2);
    } else {
      std::memcpy(&block.d, row.factors + 2 * b, 2);
    }
  } else if constexpr (std::is_same_v<Block, BlockQ2_K>) {
    pairs_from_plane(row.quants + 64 * b, block.qs);
    std::memcpy(block.scales, row.scales + 16 * b, 16);
    std::memcpy(&block.d, row.factors + 4 * b, 2);
    std::memcpy(&block.dmin, row.factors + 4 * b + 2, 2);
  } else if constexpr (std::is_same_v<Block, BlockQ3_K>) {
    pairs_from_plane(row.quants + 64 * b, block.qs);
    transpose_bits(row.high + 32 * b, block.hmask);
    uint8_t scales[16];
    for (uint32_t i = 0; i < 16; ++i) scales[i] = static_cast<uint8_t>(row.scales[16 * b + i] + 32);
    pack_q3_k_scales(scales, block.scales);
    std::memcpy(&block.d, row.factors + 2 * b, 2);
  } else if constexpr (std::is_same_v<Block, BlockQ4_K> || std::is_same_v<Block, BlockQ5_K>) {
    k_nibbles(row.quants + 128 * b, block.qs);
    if constexpr (requires { block.qh; }) transpose_bits(row.high + 32 * b, block.qh);
    header_from_plane(row.scales + 16 * b, block);
  } else if constexpr (std::is_same_v<Block, BlockQ6_K>) {
    q6_k_nibbles_from_plane(row.quants + 128 * b, block.ql);
    pairs_from_plane(row.high + 64 * b, block.qh);
    std::memcpy(block.scales, row.scales + 16 * b, 16);
    std::memcpy(&block.d, row.factors + 2 * b, 2);
  } else {
    static_assert(std::is_same_v<Block, BlockIQ4_XS>);
    std::memcpy(block.qs, row.quants + 128 * b, 128);
    uint32_t high = 0, low = 0;
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t scale = static_cast<uint8_t>(row.scales[8 * b + i] + 32);
      low |= (scale & 15) << (4 * i);
      high |= (scale >> 4) << (2 * i);
    }
    store_word(block.scales_l, low);
    block.scales_h = static_cast<uint16_t>(high);
    std::memcpy(&block.d, row.factors + 2 * b, 2);
  }
}

// Splits the rows into chunks large enough for one thread each.
void for_rows(const GpuBlockLayout& layout, ThreadPool* pool,
              const std::function<void(uint64_t, uint64_t)>& work) {
  if (!pool) return work(0, layout.rows);
  constexpr uint64_t kChunkBytes = 1 << 18;
  pool->parallel_for(layout.rows,
                     std::max<uint64_t>(1, kChunkBytes / std::max<uint64_t>(1, layout.row_bytes)),
                     work);
}

void to_gpu_layout_on(const GpuBlockLayout& layout, const void* blocks, void* planes,
                      ThreadPool* pool) {
  with_block(layout.type, [&]<class Block>(Block*) {
    const uint64_t per_row = layout.columns / Block::kElements;
    for_rows(layout, pool, [&](uint64_t first, uint64_t last) {
      for (uint64_t r = first; r < last; ++r) {
        const Block* from = static_cast<const Block*>(blocks) + r * per_row;
        uint8_t* to = static_cast<uint8_t*>(planes) + r * layout.row_bytes;
        std::memset(to, 0, layout.row_bytes);
        const ToRow row(layout, to);
        for (uint64_t b = 0; b < per_row; ++b) block_to_planes(from[b], row, b);
      }
    });
  });
}

void from_gpu_layout_on(const GpuBlockLayout& layout, const void* planes, void* blocks,
                        ThreadPool* pool) {
  with_block(layout.type, [&]<class Block>(Block*) {
    const uint64_t per_row = layout.columns / Block::kElements;
    for_rows(layout, pool, [&](uint64_t first, uint64_t last) {
      for (uint64_t r = first; r < last; ++r) {
        Block* to = static_cast<Block*>(blocks) + r * per_row;
        const FromRow row(layout, static_cast<const uint8_t*>(planes) + r * layout.row_bytes);
        for (uint64_t b = 0; b < per_row; ++b) block_from_planes(row, b, to[b]);
      }
    });
  });
}

}  // namespace

std::span<const int8_t> value_table(QuantValues values) {
  switch (values) {
    case QuantValues::linear:
      break;
    case QuantValues::iq4:
      return kIq4Values;
    case QuantValues::mxfp4:
      return kMxfp4Values;
    case QuantValues::iq1:
      return kIq1Values;
    case QuantValues::iq2:
      return kIq2Values;
    case QuantValues::iq3_xxs:
      return kIq3XxsValues;
    case QuantValues::iq3_s:
      return kIq3SValues;
  }
  return {};
}

GpuBlockLayout gpu_block_layout(BlockType type, uint64_t rows, uint64_t columns) {
  const BlockInfo& info = block_info(type);
  if (columns % info.elements != 0)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("GPU layout of {}: rows have {} elements, which is not a multiple of its "
                    "block of {}; keep such a tensor in f16",
                    info.name, columns, info.elements));
  GpuBlockLayout layout;
  layout.type = type;
  layout.format = plane_format(type);
  layout.rows = rows;
  layout.columns = columns;
  const PlaneFormat& f = layout.format;
  uint64_t end = 0;
  const auto add = [&](Plane& plane, uint64_t bytes) {
    plane = {end, bytes};
    end = round_up(end + bytes, 16);
  };
  add(layout.quants, columns * f.quant_bits / 8);
  add(layout.high, columns * f.high_bits / 8);
  if (f.scales == ScaleFormat::header)
    add(layout.scales, columns / 256 * 16);
  else
    add(layout.scales, f.scale_elements ? columns / f.scale_elements : 0);
  constexpr uint64_t kFactorBytes[] = {2, 4, 1, 0, 0};  // in the order of FactorFormat
  add(layout.factors, columns / f.factor_elements * kFactorBytes[static_cast<int>(f.factors)]);
  layout.row_bytes = round_up(end, 32);
  return layout;
}

void to_gpu_layout(const GpuBlockLayout& layout, const void* blocks, void* planes) {
  to_gpu_layout_on(layout, blocks, planes, nullptr);
}
void to_gpu_layout(const GpuBlockLayout& layout, const void* blocks, void* planes,
                   ThreadPool& pool) {
  to_gpu_layout_on(layout, blocks, planes, &pool);
}
void from_gpu_layout(const GpuBlockLayout& layout, const void* planes, void* blocks) {
  from_gpu_layout_on(layout, planes, blocks, nullptr);
}
void from_gpu_layout(const GpuBlockLayout& layout, const void* planes, void* blocks,
                     ThreadPool& pool) {
  from_gpu_layout_on(layout, planes, blocks, &pool);
}

float plane_element(const GpuBlockLayout& layout, const void* planes, uint64_t row,
                    uint64_t column) {
  const PlaneFormat& f = layout.format;
  const uint64_t e = column;
  const FromRow at(layout, static_cast<const uint8_t*>(planes) + row * layout.row_bytes);

  int32_t q;
  if (f.quant_bits == 8)
    q = static_cast<int8_t>(at.quants[e]);
  else if (f.quant_bits == 4)
    q = load_word(at.quants + 4 * (4 * (e / 32) + e % 16 / 4)) >> (8 * (e % 4) + 4 * (e / 16 % 2)) &
        15;
  else
    q = load_word(at.quants + 4 * (e / 16)) >> (8 * (e % 4) + 2 * (e % 16 / 4)) & 3;
  if (f.high_bits == 1)
    q |= (load_word(at.high + 4 * (e / 32)) >> (8 * (e % 4) + e % 32 / 4) & 1) << f.quant_bits;
  if (f.high_bits == 2)
    q |= (load_word(at.high + 4 * (e / 16)) >> (8 * (e % 4) + 2 * (e % 16 / 4)) & 3)
         << f.quant_bits;

  float v = static_cast<float>(q - f.zero);
  if (f.values != QuantValues::linear) v = value_table(f.values)[static_cast<size_t>(q)];

  float d = 0, second = 0;
  const auto pair = [&](const uint8_t* from) {
    const uint32_t word = load_word(from);
    d = f32_from_f16(static_cast<uint16_t>(word));
    second = f32_from_f16(static_cast<uint16_t>(word >> 16));
  };
  const uint64_t factor = e / f.factor_elements;
  switch (f.factors) {
    case FactorFormat::f16: {
      uint16_t half;
      std::memcpy(&half, at.factors + 2 * factor, 2);
      d = f32_from_f16(half);
      break;
    }
    case FactorFormat::pair:
      pair(at.factors + 4 * factor);
      break;
    case FactorFormat::e8m0:
      d = mxfp4_scale(at.factors[factor]);
      break;
    case FactorFormat::in_header:
      pair(at.scales + 16 * factor);
      break;
    case FactorFormat::none:
      d = 1;
      break;
  }
  d = std::ldexp(d, f.exponent);

  switch (f.scales) {
    case ScaleFormat::none:
      return f.has_offset() ? d * v + second : d * v;
    case ScaleFormat::i8:
      return d * static_cast<float>(static_cast<int8_t>(at.scales[e / f.scale_elements])) * v;
    case ScaleFormat::ue4m3:
      return d * nvfp4_scale(at.scales[e / 16]) * v;
    case ScaleFormat::pair4: {
      const uint8_t byte = at.scales[e / 16];
      return d * static_cast<float>(byte & 15) * v - second * static_cast<float>(byte >> 4);
    }
    case ScaleFormat::header: {
      const ScaleMin sm = header_pair(at.scales + 16 * factor, static_cast<uint32_t>(e / 32 % 8));
      return d * static_cast<float>(sm.scale) * v - second * static_cast<float>(sm.min);
    }
  }
  return 0;
}

}  // namespace prism
