// Activations quantised to 8 bits, for products with block-quantised weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "base/system/thread_pool.h"
#include "prism/element_type.h"

namespace prism::cpu {

// Cache-line-aligned memory: vectors then never straddle two lines, which would double their loads.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kLine{64};
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(operator new(count * sizeof(T), kLine)); }
  void deallocate(T* memory, size_t) { operator delete(memory, kLine); }
  template <class U>
  bool operator==(const LineAllocator<U>&) const {
    return true;
  }
};

// Types whose blocks kernels read in place. Blocks of the others are expanded first: see
// cpu/products/expanded_rows.h.
constexpr bool is_read_in_place(BlockType type) { return type <= BlockType::mxfp4; }

// Activations under one scale: as many as weights in a block, where blocks are read in place.
constexpr uint32_t activation_group(BlockType type) {
  return is_read_in_place(type) && type >= BlockType::q2_k && type != BlockType::iq4_nl &&
                 type != BlockType::mxfp4
             ? 256
             : 32;
}

// Rows of k activations as integers times scales: x[i][e] is about scales[i][e / scale_elements] *
// values[i][e]. A scale covers activation_group elements.
//
// The rounding, in f32: with a = the largest |x| under a scale, scale = a / 127 and value = x *
// (127 / a) rounded to nearest, ties to even. If a < 2^-100, scale and values are zero. If an
// element is infinite or NaN, the scale is NaN and the values are zero, so every result that
// depends on the elements is NaN.
struct ActivationsView {
  uint64_t rows = 0, k = 0;
  uint32_t scale_elements = 32;
  int8_t* values = nullptr;      // [rows][k]
  float* scales = nullptr;       // [rows][k / scale_elements]
  float* scaled_sums = nullptr;  // [rows][k / 32], scale * sum; only if scale_elements is 32
  int16_t* sums16 = nullptr;     // [rows][k / 16], sums of values
  int16_t* sums32 = nullptr;     // [rows][k / 32]

  const int8_t* row_values(uint64_t row) const { return values + row * k; }
  const float* row_scales(uint64_t row) const { return scales + row * (k / scale_elements); }
  const int16_t* row_sums16(uint64_t row) const { return sums16 + row * (k / 16); }
  const int16_t* row_sums32(uint64_t row) const { return sums32 + row * (k / 32); }
  const float* row_scaled_sums(uint64_t row) const { return scaled_sums + row * (k / 32); }

  // For weights of `type`, in the caller's cache-line-aligned memory. k must be a multiple of the
  // type's block.
  static uint64_t row_bytes(BlockType type, uint64_t k);
  static ActivationsView in(void* memory, BlockType type, uint64_t rows, uint64_t k);
};

// The same with its own memory.
struct QuantisedActivations : ActivationsView {
  QuantisedActivations() = default;
  QuantisedActivations(const QuantisedActivations&) = delete;
  std::vector<std::byte, LineAllocator<std::byte>> memory;
};

// Quantises x, with row stride x_stride in elements, for weight types whose activation_group equals
// the result's scale_elements.
void quantise_activations(ThreadPool& pool, const float* x, uint64_t x_stride,
                          const ActivationsView& result);
// The same into reusable memory.
void quantise_activations(ThreadPool& pool, BlockType type, const float* x, uint64_t rows,
                          uint64_t k, uint64_t x_stride, QuantisedActivations& result);

struct ActivationTile {
  uint32_t first = 0, rows = 0;
};

// The same activations in the order in which panel kernels read them: tiles of a few rows, which
// interleave the rows in units of four elements.
struct PackedActivations {
  uint64_t k = 0;
  uint32_t scale_elements = 32;
  uint32_t sum_elements = 32;  // 16 or 32
  std::vector<ActivationTile> tiles;
  std::vector<uint8_t, LineAllocator<uint8_t>>
      values;                 // tile at first * k, then [k / 4][tile rows][4]
  std::vector<float> scales;  // tile at first * (k / scale_elements), then [...][tile rows]
  std::vector<float> sums;    // likewise per sum_elements; scaled if scales are per 32
};

// Packs the listed rows of x into tiles of at most tile_rows. `flip` is added to each value, modulo
// 256.
void pack_activations(ThreadPool& pool, const ActivationsView& x, const uint32_t* rows,
                      uint64_t row_count, uint32_t tile_rows, uint32_t sum_elements, uint8_t flip,
                      PackedActivations& result);

// The same activations for kernels whose lanes of a vector hold elements under one scale: groups of
// 256 elements, as words of four. `lanes` says which:
// 8: a lane holds a block of 32, and the order of words is [8 words][8 blocks]. The last blocks,
// fewer than eight, are repeated for as many weight rows as one vector has room for; what is left
// over is zero.
// 16: a lane holds 16 elements, and the order is [4 words][16 lanes]. Word i has elements 2i, 2i +
// 1, 8 + 2i and 9 + 2i.
struct LaneActivations {
  uint64_t lanes = 8;   // of a group: 8 or 16
  uint64_t groups = 0;  // of a row
  uint64_t span = 8;    // lanes of the last group that belong to one weight row: 2, 4 or 8
  std::vector<int8_t, LineAllocator<int8_t>> values;           // [rows][groups][256]
  std::vector<float, LineAllocator<float>> scales;             // [rows][groups][lanes]
  std::vector<float, LineAllocator<float>> scaled_sums;        // likewise, only with 8 lanes
  std::vector<int32_t, LineAllocator<int32_t>> negative_sums;  // likewise; sums of values
};

// Packs the listed rows of x: with 8 lanes, where scale_elements is 32, or with 16, where k is a
// multiple of 256.
void pack_lanes(const ActivationsView& x, const uint32_t* rows, uint64_t row_count,
                LaneActivations& result);
void pack_half_lanes(const ActivationsView& x, const uint32_t* rows, uint64_t row_count,
                     LaneActivations& result);

}  // namespace prism::cpu
