// Kernels of attention's gradient: from queries, keys, values and the slopes of the result to the
// slopes of all three, with memory linear in the length.
//
// Weights are computed again from the sums that the forward kernels keep (AttentionOptions::sums).
// One kernel has a block of queries and reads the keys; the other has a block of keys and reads the
// queries of all heads that share it. Every sum belongs to one group, which adds in a fixed order:
// the same bits in every run.
//
// Terms: `own` rows are those whose slopes a group computes, `other` rows those it reads. Every
// sequence has all queries and all keys; the query i is at position keys - queries + i.
//
// Buffers, in this order:
//   q         type: (sequence * queries + query) * q_row + head * q_head + d
//   k, v      type: sequence * k_slot + key * k_position + kv_head * k_head + d, v likewise
//   slopes    type: of the result, as q
//   sums      f32 [sequences * queries][heads]: log2 of the sum of the weights of each query
//   products  f32, likewise: the product of each row of the result and its slope
//   q_slopes, or k_slopes and v_slopes: type, dense [rows][heads][d]
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "prism/capabilities.h"
#include "prism/device.h"
#include "prism/kernel_ir.h"

namespace prism::ops {

// The longest heads of these kernels: the slopes of a block's rows stay in registers.
inline constexpr uint32_t kMaxGradientHeadDim = 256;

struct AttentionGradientOptions {
  DType type = DType::f32;  // f32, f16 or bf16
  uint32_t head_dim = 64, value_dim = 64;
  uint32_t group = 1;  // query heads that share a key/value head
  bool causal = true, window = false, chunked = false;
};

struct AttentionGradientParams {
  uint32_t q_row = 0, q_head = 0, slopes_row = 0, slopes_head = 0;
  uint32_t k_slot = 0, k_position = 0, k_head = 0;
  uint32_t v_slot = 0, v_position = 0, v_head = 0;
  uint32_t queries = 0, keys = 0;
  float scale = 1;
  uint32_t window = 0;

  std::vector<ParamValue> values(const AttentionGradientOptions& options) const;
};

enum class GradientSide { queries, keys };  // the own rows of a kernel

// Buffers: the result (dense), its slopes, products. Parameters: rows * heads, heads, slopes_row,
// slopes_head.
ir::Kernel attention_gradient_products(const AttentionGradientOptions& options);
inline constexpr uint32_t kProductsOfGroup = 16;  // pairs of row and head

// In plain f32, for every device. Grid: heads of the side x ceil(rows / kPlainGradientRows) x
// sequences.
ir::Kernel attention_gradient_plain(const AttentionGradientOptions& options, GradientSide own);
inline constexpr uint32_t kPlainGradientRows = 32;

// With fragments of f16 or bf16.
struct GradientTile {
  uint32_t warps = 4;        // each has 16 own rows
  uint32_t rows = 64;        // other rows at a time, a multiple of 16
  bool in_registers = true;  // own rows; else they are read from shared memory each time
  uint32_t subgroup = 32;
  uint32_t own_rows() const { return warps * 16; }
};
GradientTile gradient_tile(const AttentionGradientOptions& options);
// Whether the device has the fragments and the shared memory, and heads are whole copies.
bool suits_gradient_fragments(const AttentionGradientOptions& options, const GradientTile& tile,
                              const ir::Capabilities& device);
// Grid: heads of the side x ceil(rows / tile.own_rows()) x sequences.
ir::Kernel attention_gradient_fragments(const AttentionGradientOptions& options, GradientSide own,
                                        const GradientTile& tile);

}  // namespace prism::ops
