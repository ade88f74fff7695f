// Attention kernels: softmax(q k^T) v for a few queries over a long cache (decode) and for many
// queries (prompt).
//
// Terms: a sequence has queries (the newest tokens) and keys (all tokens so far, including those of
// the queries). `group` query heads share one key/value head. A score is scale * q.k, then soft_cap
// * tanh(score / soft_cap), then + mask, then - slope of the head * distance in positions. A query
// at position p sees keys j <= p (causal) with j + window > p (window; if not causal, also j < p +
// window), or with j / window == p / window (chunked). A sink is an extra score per head that only
// enters the denominator. A query that sees no key gives zeros.
//
// Buffers, in this order:
//   q      q_type: row * q_row + head * q_head + d
//   k, v   cache: slot * kv_slot + position * kv_position + head * kv_head + d.
//          q8_0: byte rows as in base/types/gpu_block_layout.h, bound as i8, strides in bytes:
//          quants at head * kv_head, f16 factors at factor_offset + head * factor_head + d / 32 * 2
//   spans  u32, four per sequence: first row in q and out, queries, keys, slot
//   table  u32, optional: blocks of the cache at slot * table_row + position / block; the slot
//   above
//          is then the block, and the position is the one within the block
//   mask   f32, optional: row * mask_row + head * mask_head + position
//   sinks  f32, optional: one per query head (not for decode that writes partial results)
//   out    out_type: row * out_row + head * out_head + d; decode: partial results instead
//   sums   f32, optional, prompts only: row * heads + head; log2 of the sum of the query's weights
// If values are shorter than keys, v has the strides v_slot, v_position and v_head.
// Elements beyond a sequence's keys are never used. The strides of k and v are multiples of
// load_bytes(); those of q are multiples of four elements if the head size is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "prism/capabilities.h"
#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/kernel_ir.h"

namespace prism::ops {

// Latent attention has the longest heads: 512 elements and 64 rotated ones.
inline constexpr uint32_t kMaxHeadDim = 576;

// The width of cache loads in bytes: the largest of 16, 8, 4 and one element that divides a head.
uint32_t load_bytes(ElementType cache, uint32_t head_dim);

// The specialisation of a kernel.
struct AttentionOptions {
  uint32_t head_dim = 128;         // up to kMaxHeadDim; q8_0: a multiple of 32
  uint32_t value_dim = 0;          // of values and results, less than head_dim; 0: head_dim
  uint32_t group = 1;              // query heads that share a key/value head
  ElementType cache = DType::f16;  // f16, bf16, f32, or BlockType::q8_0
  DType q_type = DType::f32, out_type = DType::f32;  // f32, f16, or bf16 (prompts only)
  bool causal = true, window = false, soft_cap = false, mask = false, sinks = false;
  bool chunked = false, slopes = false;
  uint32_t block = 0;  // positions of a block, a power of two; 0: a slot has all positions
  // Decode and merge: out holds rows of out_row elements rounded to 8 bits (u32, rounded_rows.h).
  // Heads are multiples of a block and contiguous.
  bool rounded = false;
  bool sums = false;  // prompts keep the sums of weights, for the gradient

  // The type of the operands of fragments.
  DType operand() const { return q_type == DType::bf16 ? DType::bf16 : DType::f16; }
  uint32_t values() const { return value_dim > 0 ? value_dim : head_dim; }
};

// The parameters of a launch. A kernel takes those that its options require, in this order.
struct AttentionParams {
  uint32_t q_row = 0, q_head = 0, out_row = 0, out_head = 0;
  uint32_t kv_slot = 0, kv_position = 0, kv_head = 0;
  uint32_t v_slot = 0, v_position = 0, v_head = 0;  // with a value_dim
  uint32_t table_row = 0;                           // with blocks
  uint32_t factor_offset = 0, factor_head = 0;      // q8_0
  uint32_t v_factor_offset = 0;                     // q8_0 with a value_dim
  float scale = 1;
  uint32_t window = 0;
  float soft_cap = 0;
  uint32_t mask_row = 0, mask_head = 0;
  // Slopes: 2^(-2 (head + 1) slope_step) for the first slope_heads heads, 2^(-(2 (head -
  // slope_heads) + 1) slope_step) for the others.
  float slope_step = 0;
  uint32_t slope_heads = 0;

  std::vector<ParamValue> values(const AttentionOptions& options) const;
};

// --- Decode: few queries. The keys are split; the last group to finish, or a second kernel, merges
// the splits (split-KV).

struct DecodeTile {
  uint32_t queries = 1;    // maximum per sequence
  uint32_t rows = 1;       // (query, head) pairs per group, at most queries * group
  uint32_t lanes = 128;    // a multiple of 32
  uint32_t key_lanes = 8;  // lanes that share one key: a power of two, at most 32
  uint32_t unroll = 4;  // keys in flight per lane; with fragments: blocks of 16 keys per subgroup
  bool direct = false;  // one split: writes out, needs no merge
  bool merges = false;  // the last group of a block merges its splits, and a single group takes
                        // all keys if there are few: needs device_fence
  // If not 0: computes scores and sums with fragments of 16 rows, q and weights rounded to f16, and
  // keeps this many tiles of keys and values in shared memory; key_lanes is ignored.
  uint32_t stages = 0;

  // Keys that a group processes per iteration.
  uint32_t keys() const {
    return stages > 0 ? lanes / 32 * 16 * unroll : lanes / key_lanes * unroll;
  }
};

// Whether the device has the subgroups of 32 that decode shuffles in. Without them every exchange
// goes through shared memory, and attention_plain is faster even for one query.
bool suits_decode(const ir::Capabilities& capabilities);

// Tiles for GPUs with subgroups of 32: lanes in f32, and fragments.
DecodeTile decode_tile(const AttentionOptions& options, uint32_t queries);
DecodeTile fragment_decode_tile(const AttentionOptions& options, uint32_t queries);
// The faster of the two: fragments for several rows if the device has fragments and async copies.
DecodeTile decode_tile_for(const AttentionOptions& options, uint32_t queries,
                           const ir::Capabilities& capabilities);

// The number of splits that occupies all compute units. It is fixed when the plan is made,
// independent of the lengths at run time.
uint32_t decode_split_kv(const AttentionOptions& options, const DecodeTile& tile, uint32_t kv_heads,
                         uint32_t sequences, uint32_t compute_units);

// Grid: splits x (kv_heads * ceil(queries * group / rows)) x sequences. Partial results:
// partial_elements() f32. With direct: one split, and sinks (optional) precede out. With merges,
// the inputs are followed by sinks (optional), partial, counters (u32, decode_counters(); zero
// before and after the launch) and out.
ir::Kernel attention_decode(const AttentionOptions& options, const DecodeTile& tile);
std::array<uint32_t, 3> decode_grid(const AttentionOptions& options, const DecodeTile& tile,
                                    uint32_t splits, uint32_t kv_heads, uint32_t sequences);
uint64_t decode_counters(const AttentionOptions& options, const DecodeTile& tile, uint32_t kv_heads,
                         uint32_t sequences);
// Whether the device can merge within the decode launch, and whether that is faster.
bool suits_merges(const AttentionOptions& options, const DecodeTile& tile, uint32_t splits,
                  const ir::Capabilities& capabilities);
// rows: rows of q over all sequences.
uint64_t partial_elements(const AttentionOptions& options, uint32_t splits, uint32_t kv_heads,
                          uint32_t rows);

// Gives the same bits as `merges` if no group takes all keys. Buffers: partial, spans, sinks
// (optional), out. Parameters: splits, then those of AttentionParams.
ir::Kernel attention_merge(const AttentionOptions& options, const DecodeTile& tile);
std::array<uint32_t, 3> merge_grid(const AttentionOptions& options, const DecodeTile& tile,
                                   uint32_t kv_heads, uint32_t sequences);

// --- Prompt: many queries. Scores stay in matrix fragments; the result is written once.

struct PromptTile {
  uint32_t warps = 4;   // subgroups
  uint32_t blocks = 2;  // blocks of 16 queries per subgroup
  uint32_t keys = 64;   // keys per iteration, a multiple of 16
  uint32_t stages = 2;  // tiles of keys and values in flight; f16 caches only
  bool q_in_registers = false;
  uint32_t subgroup = 32;  // lanes per subgroup

  uint32_t queries() const { return warps * blocks * 16; }
};

PromptTile prompt_tile(const AttentionOptions& options);

// For devices with fragments of options.operand(), to which q and the weights of the values are
// rounded. Grid: query heads x ceil(most queries / tile.queries()) x sequences.
ir::Kernel attention_prompt(const AttentionOptions& options, const PromptTile& tile);

// --- Prompt in plain f32, for every device.

struct PlainTile {
  uint32_t queries = 16, keys = 16;
  static constexpr uint32_t kLanesOfQuery = 4;
  uint32_t lanes() const { return queries * kLanesOfQuery; }
};

// The largest tile that fits the shared memory.
PlainTile plain_tile(const AttentionOptions& options, uint32_t shared_bytes);

// Grid: query heads x ceil(most queries / tile.queries) x sequences.
ir::Kernel attention_plain(const AttentionOptions& options, const PlainTile& tile);

}  // namespace prism::ops
