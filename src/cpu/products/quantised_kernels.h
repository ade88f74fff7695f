// The table of kernels for products with block-quantised weights: one entry per instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/products/quantised_activations.h"

namespace prism::cpu {

// The most activation rows per pass over a weight row, and of kernels with one scale in a lane.
inline constexpr uint32_t kQuantisedRowsAtOnce = 4, kQuantisedLaneRows = 8;
// Up to this many activation rows, passes with one scale in a lane are faster than panels: in
// processor time on Zen 4, rows of 576 to 4,096 elements, and for blocks of 256 on Zen 5. The
// second is for q8_0 and iq4_xs.
inline constexpr uint32_t kMostLaneRows = 12, kMostByteLaneRows = 8;

// Tasks are plain pointers: headers included by the kernels' files must not define functions,
// because those would be compiled for that instruction set and could be linked into other code.

// A kernel for each type that is read in place, and the last one for expanded blocks.
inline constexpr int kKernelTypeCount = static_cast<int>(BlockType::mxfp4) + 2;
constexpr int kernel_of(BlockType type) {
  return is_read_in_place(type) ? static_cast<int>(type) : kKernelTypeCount - 1;
}

// 32 elements of any type as integers: x[e] = scales[e / 16] * values[e].
struct ExpandedBlock {
  static constexpr uint32_t kElements = 32;
  float scales[2];
  int8_t values[32];
};

// Weights of a type that is not read in place, in whole blocks.
struct ExpandTask {
  BlockType type;
  const void* blocks;
  uint64_t elements;
  ExpandedBlock* to;      // elements / 32
  const uint64_t* book;   // the codebook of iq types
  const float* scales;    // of nvfp4, by code
  float unit;             // by which the block's scale is multiplied
  const uint16_t* words;  // likewise, as CodebookWords
  const int8_t* digits;   // their values
};

// Some weight rows times a few activation rows, as whole dot products.
struct QuantisedRowsTask {
  const void* weights;  // the first row
  uint64_t row_bytes, rows, k;
  uint32_t count;  // number of activation rows; for each:
  const int8_t* values[kQuantisedRowsAtOnce];
  const float* scales[kQuantisedRowsAtOnce];
  const int16_t* sums[kQuantisedRowsAtOnce];       // per group, for blocks of 256
  const float* scaled_sums[kQuantisedRowsAtOnce];  // for blocks of 32
  float* y[kQuantisedRowsAtOnce];  // results for the first weight row; the others follow
};

// The same with activations whose blocks are lanes (LaneActivations).
struct QuantisedLanesTask {
  const void* weights;  // the first row
  uint64_t row_bytes, rows, k;
  uint64_t span;   // LaneActivations::span, for blocks of 32
  uint32_t count;  // number of activation rows, 1 to 4, 6 or 8; for each:
  const int8_t* values[kQuantisedLaneRows];
  const float* scales[kQuantisedLaneRows];
  const float* scaled_sums[kQuantisedLaneRows];
  const int32_t* negative_sums[kQuantisedLaneRows];
  float* y[kQuantisedLaneRows];  // results for the first weight row; the others follow
  const ExpandTask* how;         // for types that are not read in place
};

// One panel of weight rows times many activation rows. Only the activations of the given tiles are
// used.
struct QuantisedPanelTask {
  const void* weights;          // the first row
  uint64_t row_bytes, rows, k;  // rows: at most panel_rows
  const ActivationTile* tiles;  // see PackedActivations
  uint64_t tile_count;          // at least one
  uint32_t scale_elements, sum_elements;
  const uint8_t* values;
  const float *scales, *sums;
  float* const* y;  // per packed row; the panel's results start at `column`
  uint64_t column;
  float* scratch;  // 64-byte aligned: panel_rows floats per tile row
};

struct QuantisedKernels {
  const char* name;
  bool (*supported)();  // whether this processor has the instructions
  uint32_t panel_rows;  // weight rows per panel, at most kMaxPanelRows; 0: no panel kernel
  uint32_t tile_rows;   // activation rows per tile
  uint8_t flip;         // 128 if the instruction takes unsigned activations, else 0
  void (*rows[kKernelTypeCount])(const QuantisedRowsTask&);  // by kernel_of
  void (*panel[kKernelTypeCount])(const QuantisedPanelTask&);
  void (*expand)(const ExpandTask&) = nullptr;  // null: expand_blocks in plain C++
  // Expands rows of the file while it multiplies them; null: they are expanded before.
  void (*rows_expanding)(const QuantisedRowsTask&, const ExpandTask&) = nullptr;
  // Used instead of `rows` where it is not null. Null: there is none.
  using Lanes = void (*)(const QuantisedLanesTask&);
  const Lanes* lanes = nullptr;  // by block type
};
inline constexpr uint32_t kMaxPanelRows = 32;

// Weights per scale (and min) of the types that are read in place: 16 for q2_k, q3_k and q6_k,
// else 32.
constexpr uint32_t quantised_group(BlockType type) {
  return type == BlockType::q2_k || type == BlockType::q3_k || type == BlockType::q6_k ? 16 : 32;
}

// The entries; null if the compiler does not target the instruction set.
const QuantisedKernels* avx512_vnni_quantised_kernels();
const QuantisedKernels* avx_vnni_quantised_kernels();
const QuantisedKernels* avx2_quantised_kernels();
const QuantisedKernels* neon_i8mm_quantised_kernels();
const QuantisedKernels* neon_dot_quantised_kernels();
const QuantisedKernels* scalar_quantised_kernels();

// All compiled entries, best first; the last one is scalar and always works.
const std::vector<const QuantisedKernels*>& all_quantised_kernels();
// The first entry that this processor supports.
const QuantisedKernels& best_quantised_kernels();

}  // namespace prism::cpu
