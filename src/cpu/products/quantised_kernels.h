// The table of kernels for products with block-quantised weights: one entry an instruction set.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/products/quantised_activations.h"

namespace prism::cpu {

// The most activation rows that one pass over a weight row serves.
inline constexpr uint32_t kQuantisedRowsAtOnce = 4;

// Tasks are plain pointers: what the kernels' files include must bring no code of its own, since it
// would be compiled for their instruction set and might serve the whole program.

// Some weight rows times a few activation rows, as whole dot products.
struct QuantisedRowsTask {
  const void* weights;  // the first row
  uint64_t row_bytes, rows, k;
  uint32_t count;  // of activation rows; of each:
  const int8_t* values[kQuantisedRowsAtOnce];
  const float* scales[kQuantisedRowsAtOnce];
  const int16_t* sums[kQuantisedRowsAtOnce];       // of each group, for blocks of 256
  const float* scaled_sums[kQuantisedRowsAtOnce];  // for blocks of 32
  float* y[kQuantisedRowsAtOnce];  // the result with the first weight row; the rest follow
};

// One panel of weight rows times many activation rows. Of the activations only those of the given
// tiles are used.
struct QuantisedPanelTask {
  const void* weights;          // the first row
  uint64_t row_bytes, rows, k;  // rows: at most panel_rows
  const ActivationTile* tiles;  // see PackedActivations
  uint64_t tile_count;          // at least one
  uint32_t scale_elements, sum_elements;
  const uint8_t* values;
  const float *scales, *sums;
  float* const* y;  // of each packed row; the results of the panel go to `column` and on
  uint64_t column;
  float* scratch;  // aligned to 64 bytes: panel_rows floats for each row of the tiles
};

struct QuantisedKernels {
  const char* name;
  bool (*supported)();  // whether this processor has the instructions
  uint32_t
      panel_rows;      // weight rows in a panel, at most kMaxPanelRows; 0: there is no panel kernel
  uint32_t tile_rows;  // activation rows in a tile
  uint8_t flip;        // 128 where the instruction takes activations without sign, else 0
  void (*rows[kBlockTypeCount])(const QuantisedRowsTask&);
  void (*panel[kBlockTypeCount])(const QuantisedPanelTask&);
};
inline constexpr uint32_t kMaxPanelRows = 32;

// Elements of weights under one scale (and min): 16 for q2_k, q3_k and q6_k, else 32.
constexpr uint32_t quantised_group(BlockType type) {
  return type == BlockType::q2_k || type == BlockType::q3_k || type == BlockType::q6_k ? 16 : 32;
}

// The entries; null where the instruction set is not one of the compiler's target.
const QuantisedKernels* avx512_vnni_quantised_kernels();
const QuantisedKernels* avx_vnni_quantised_kernels();
const QuantisedKernels* avx2_quantised_kernels();
const QuantisedKernels* neon_i8mm_quantised_kernels();
const QuantisedKernels* neon_dot_quantised_kernels();
const QuantisedKernels* scalar_quantised_kernels();

// Every entry compiled in, best first; the last is the scalar one, which always works.
const std::vector<const QuantisedKernels*>& all_quantised_kernels();
// The first that this processor supports.
const QuantisedKernels& best_quantised_kernels();

}  // namespace prism::cpu
