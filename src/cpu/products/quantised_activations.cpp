// Quantises and packs activations; compiled without contraction, so that every processor rounds
// alike.
#include "cpu/products/quantised_activations.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "prism/error.h"

namespace prism::cpu {
namespace {

constexpr uint32_t kTinyBits = 27u << 23;        // 2^-100
constexpr uint32_t kInfiniteBits = 0xFFu << 23;  // infinity; NaNs are above it
// Adding and subtracting 1.5 * 2^23 rounds values below 2^22 to an integer, which is in the low
// bits of the sum.
constexpr float kRounder = 12582912.0f;

// Quantises `count` elements, a multiple of 16, with one scale.
float round_group(const float* x, uint32_t count, int8_t* values) {
  // Magnitudes of floats are ordered like their bits, and comparing bits also handles NaN.
  int32_t largest = 0;
  for (uint32_t e = 0; e < count; ++e) {
    const int32_t bits = std::bit_cast<int32_t>(x[e]) & 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
  const auto bits = static_cast<uint32_t>(largest);
  if (bits < kTinyBits || bits >= kInfiniteBits) {
    std::memset(values, 0, count);
    return bits < kTinyBits ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  const float a = std::bit_cast<float>(bits);
  const float inverse = 127.0f / a;
  for (uint32_t e = 0; e < count; ++e)
    values[e] = static_cast<int8_t>(std::bit_cast<int32_t>(x[e] * inverse + kRounder));
  return a / 127.0f;
}

void sum_values(const int8_t* values, uint64_t count, int16_t* sums16, int16_t* sums32) {
  for (uint64_t group = 0; group < count / 32; ++group) {
    int half[2] = {0, 0};
    for (uint32_t h = 0; h < 2; ++h)
      for (uint32_t e = 0; e < 16; ++e) half[h] += values[32 * group + 16 * h + e];
    sums16[2 * group] = static_cast<int16_t>(half[0]);
    sums16[2 * group + 1] = static_cast<int16_t>(half[1]);
    sums32[group] = static_cast<int16_t>(half[0] + half[1]);
  }
}

void round_piece(const float* x, uint64_t row, uint64_t first, uint64_t count,
                 const ActivationsView& result) {
  const uint32_t covered = result.scale_elements;
  int8_t* values = result.values + row * result.k + first;
  float* scales = result.scales + (row * result.k + first) / covered;
  for (uint64_t group = 0; group < count / covered; ++group)
    scales[group] = round_group(x + first + group * covered, covered, values + group * covered);
  int16_t* sums32 = result.sums32 + (row * result.k + first) / 32;
  sum_values(values, count, result.sums16 + (row * result.k + first) / 16, sums32);
  if (covered != 32) return;
  float* scaled = result.scaled_sums + (row * result.k + first) / 32;
  for (uint64_t group = 0; group < count / 32; ++group)
    scaled[group] = scales[group] * static_cast<float>(sums32[group]);
}

void pack_tile(const ActivationsView& x, const uint32_t* rows, ActivationTile tile, uint8_t flip,
               PackedActivations& result) {
  const uint64_t k = x.k, n = tile.rows;
  const uint32_t flips = 0x01010101u * flip;  // flip is 0 or 128, so xor needs no carry
  uint8_t* values = result.values.data() + tile.first * k;
  float* scales = result.scales.data() + tile.first * (k / x.scale_elements);
  float* sums = result.sums.data() + tile.first * (k / result.sum_elements);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t row = rows[tile.first + i];
    const int8_t* from = x.row_values(row);
    for (uint64_t word = 0; word < k / 4; ++word) {
      uint32_t four;
      std::memcpy(&four, from + 4 * word, 4);
      four ^= flips;
      std::memcpy(values + 4 * (word * n + i), &four, 4);
    }
    for (uint64_t group = 0; group < k / x.scale_elements; ++group)
      scales[group * n + i] = x.row_scales(row)[group];
    for (uint64_t group = 0; group < k / result.sum_elements; ++group) {
      sums[group * n + i] = x.scale_elements == 32 ? x.row_scaled_sums(row)[group]
                            : result.sum_elements == 32
                                ? static_cast<float>(x.row_sums32(row)[group])
                                : static_cast<float>(x.row_sums16(row)[group]);
    }
  }
}

}  // namespace

uint64_t ActivationsView::row_bytes(BlockType type, uint64_t k) {
  const BlockInfo& info = block_info(type);
  if (k % info.elements != 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "quantise activations: rows of " + std::to_string(k) + " elements for weights of " +
                    info.name + ", whose blocks have " + std::to_string(info.elements) +
                    "; the length of a row must be a multiple of the block");
  }
  const uint32_t group = activation_group(type);
  const uint64_t floats = k / group + (group == 32 ? k / 32 : 0);
  return k + floats * sizeof(float) + (k / 16 + k / 32) * sizeof(int16_t);
}

ActivationsView ActivationsView::in(void* memory, BlockType type, uint64_t rows, uint64_t k) {
  row_bytes(type, k);  // checks k
  ActivationsView view;
  view.rows = rows;
  view.k = k;
  view.scale_elements = activation_group(type);
  view.values = static_cast<int8_t*>(memory);
  view.scales = reinterpret_cast<float*>(view.values + rows * k);
  view.scaled_sums = view.scales + rows * (k / view.scale_elements);
  view.sums16 = reinterpret_cast<int16_t*>(view.scaled_sums +
                                           (view.scale_elements == 32 ? rows * (k / 32) : 0));
  view.sums32 = view.sums16 + rows * (k / 16);
  return view;
}

void quantise_activations(ThreadPool& pool, const float* x, uint64_t x_stride,
                          const ActivationsView& result) {
  const uint64_t k = result.k;
  if (result.rows * k == 0) return;
  constexpr uint64_t kPiece = 2048;  // about 1 us of work, the least worth a thread
  const uint64_t pieces = (k + kPiece - 1) / kPiece;
  pool.parallel_for(result.rows * pieces, 2, [&](uint64_t begin, uint64_t end) {
    for (uint64_t piece = begin; piece < end; ++piece) {
      const uint64_t row = piece / pieces, first = piece % pieces * kPiece;
      round_piece(x + row * x_stride, row, first, std::min(kPiece, k - first), result);
    }
  });
}

void quantise_activations(ThreadPool& pool, BlockType type, const float* x, uint64_t rows,
                          uint64_t k, uint64_t x_stride, QuantisedActivations& result) {
  result.memory.resize(rows * ActivationsView::row_bytes(type, k));
  static_cast<ActivationsView&>(result) = ActivationsView::in(result.memory.data(), type, rows, k);
  quantise_activations(pool, x, x_stride, result);
}

void pack_activations(ThreadPool& pool, const ActivationsView& x, const uint32_t* rows,
                      uint64_t row_count, uint32_t tile_rows, uint32_t sum_elements, uint8_t flip,
                      PackedActivations& result) {
  result.k = x.k;
  result.scale_elements = x.scale_elements;
  result.sum_elements = sum_elements;
  result.values.resize(row_count * x.k);
  result.scales.resize(row_count * (x.k / x.scale_elements));
  result.sums.resize(row_count * (x.k / sum_elements));
  // Tiles of nearly equal height: a last tile with one row would cost as much as a full one.
  const uint64_t tiles = (row_count + tile_rows - 1) / tile_rows;
  result.tiles.resize(tiles);
  for (uint64_t tile = 0; tile < tiles; ++tile) {
    const uint64_t first = tile * row_count / tiles, last = (tile + 1) * row_count / tiles;
    result.tiles[tile] = {static_cast<uint32_t>(first), static_cast<uint32_t>(last - first)};
  }
  pool.parallel_for(tiles, 1, [&](uint64_t begin, uint64_t end) {
    for (uint64_t tile = begin; tile < end; ++tile)
      pack_tile(x, rows, result.tiles[tile], flip, result);
  });
}

void pack_lanes(const ActivationsView& x, const uint32_t* rows, uint64_t row_count,
                LaneActivations& result) {
  const uint64_t blocks = x.k / 32, whole = blocks / 8, tail = blocks % 8;
  result.lanes = 8;
  result.groups = whole + (tail > 0);
  result.span = tail > 4 ? 8 : tail > 2 ? 4 : 2;
  const uint64_t lanes = result.groups * 8;  // of a row
  result.values.resize(row_count * lanes * 32);
  result.scales.resize(row_count * lanes);
  result.scaled_sums.resize(row_count * lanes);
  result.negative_sums.resize(row_count * lanes);
  for (uint64_t i = 0; i < row_count; ++i) {
    const int8_t* from = x.row_values(rows[i]);
    const float *scales = x.row_scales(rows[i]), *scaled = x.row_scaled_sums(rows[i]);
    const int16_t* sums = x.row_sums32(rows[i]);
    for (uint64_t lane = 0; lane < lanes; ++lane) {
      const uint64_t group = lane / 8, at = i * lanes + lane;
      const uint64_t block = group < whole ? lane : group * 8 + lane % result.span;
      const bool is_block = block < blocks;
      result.scales[at] = is_block ? scales[block] : 0;
      result.scaled_sums[at] = is_block ? scaled[block] : 0;
      result.negative_sums[at] = is_block ? -sums[block] : 0;
      int8_t* to = result.values.data() + (i * result.groups + group) * 256 + lane % 8 * 4;
      for (uint64_t word = 0; word < 8; ++word) {
        if (is_block)
          std::memcpy(to + word * 32, from + block * 32 + word * 4, 4);
        else
          std::memset(to + word * 32, 0, 4);
      }
    }
  }
}

void pack_half_lanes(const ActivationsView& x, const uint32_t* rows, uint64_t row_count,
                     LaneActivations& result) {
  result.lanes = 16;
  result.groups = x.k / 256;
  const uint64_t lanes = result.groups * 16;  // of a row
  result.values.resize(row_count * x.k);
  result.scales.resize(row_count * lanes);
  result.negative_sums.resize(row_count * lanes);
  for (uint64_t i = 0; i < row_count; ++i) {
    const int8_t* from = x.row_values(rows[i]);
    const float* scales = x.row_scales(rows[i]);
    const int16_t* sums = x.row_sums16(rows[i]);
    int8_t* to = result.values.data() + i * x.k;
    for (uint64_t lane = 0; lane < lanes; ++lane) {
      result.scales[i * lanes + lane] = scales[16 * lane / x.scale_elements];
      result.negative_sums[i * lanes + lane] = -sums[lane];
      uint64_t low, high;
      std::memcpy(&low, from + 16 * lane, 8);
      std::memcpy(&high, from + 16 * lane + 8, 8);
      for (uint64_t word = 0; word < 4; ++word, low >>= 16, high >>= 16) {
        const auto four = static_cast<uint32_t>((low & 0xFFFF) | high << 16);
        std::memcpy(to + lane / 16 * 256 + word * 64 + lane % 16 * 4, &four, 4);
      }
    }
  }
}

}  // namespace prism::cpu
