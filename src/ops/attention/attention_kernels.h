// Attention in the kernel language: softmax(q k^T) v for a few queries over a long cache (decode),
// and for many queries (prompt).
//
// Words: a sequence has queries (the newest tokens) and keys (all tokens so far, the queries'
// own included). `group` query heads share one key/value head. Scores are
// scale * q.k, then soft_cap * tanh(score / soft_cap), then + mask; a query at position p sees keys
// j <= p (causal), of them those with j + window > p (window). A sink is one more score of the
// head, in the denominator only. A query that sees no key gives zeros.
//
// Buffers, in this order:
//   q      q_type: row * q_row + head * q_head + d
//   k, v   cache: element slot * kv_slot + position * kv_position + head * kv_head + d. q8_0: rows
//   of
//          bytes as in base/types/gpu_block_layout.h, bound as i8: strides in bytes, head * kv_head
//          for the quants, factors (f16) at + factor_offset + head * factor_head + d / 32 * 2
//   spans  u32, four for each sequence: its first row in q and out, its queries, its keys, its slot
//   mask   f32, with the option: element row * mask_row + position, the same for all heads
//   sinks  f32, with the option: one for each query head (prompt and merge; decode has no use for
//   it) out    out_type: row * out_row + head * out_head + d;   decode: partial results instead
// Elements beyond a sequence's keys are never used, whatever they hold. The strides of k and v are
// multiples of load_bytes(), those of q of four elements where a head is.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "prism/capabilities.h"
#include "prism/device.h"
#include "prism/element_type.h"
#include "prism/kernel_ir.h"

namespace prism::ops {

inline constexpr uint32_t kMaxHeadDim = 512;

// What a cache is read in, in bytes: the most of 16, 8, 4 and one element that a head is a multiple
// of.
uint32_t load_bytes(ElementType cache, uint32_t head_dim);

// What a kernel is specialised for.
struct AttentionOptions {
  uint32_t head_dim = 128;         // up to kMaxHeadDim; q8_0: a multiple of 32
  uint32_t group = 1;              // query heads that share a key/value head
  ElementType cache = DType::f16;  // f16, bf16, f32, or BlockType::q8_0
  DType q_type = DType::f32, out_type = DType::f32;
  bool causal = true, window = false, soft_cap = false, mask = false, sinks = false;
  // Decode and merge: out is rows of out_row elements rounded to 8 bits (u32, rounded_rows.h);
  // heads are whole blocks of them and stand one after the other.
  bool rounded = false;
};

// The parameters of a launch; every kernel takes those that its options name, in this order.
struct AttentionParams {
  uint32_t q_row = 0, q_head = 0, out_row = 0, out_head = 0;
  uint32_t kv_slot = 0, kv_position = 0, kv_head = 0;
  uint32_t factor_offset = 0, factor_head = 0;  // q8_0
  float scale = 1;
  uint32_t window = 0;
  float soft_cap = 0;
  uint32_t mask_row = 0;

  std::vector<ParamValue> values(const AttentionOptions& options) const;
};

// --- Decode: few queries, keys in splits that are merged by the last group to end, or by a second
// kernel.

struct DecodeTile {
  uint32_t queries = 1;    // at most, of one sequence
  uint32_t rows = 1;       // (query, head) pairs a group holds, at most queries * group
  uint32_t lanes = 128;    // a multiple of 32
  uint32_t key_lanes = 8;  // lanes that share one key: a power of two, at most 32
  uint32_t unroll = 4;     // keys a lane has under way; by fragments: blocks of 16 of a subgroup
  bool direct = false;     // one split: writes out, needs no merge
  bool merges = false;     // the last group of a block merges its splits, and one alone has few
                           // keys: needs device_fence
  // Not 0: scores and sums by fragments of 16 rows, q and weights rounded to f16; this many turns
  // of keys and values in shared memory. key_lanes has no meaning then.
  uint32_t stages = 0;

  // Keys the group takes in one turn.
  uint32_t keys() const {
    return stages > 0 ? lanes / 32 * 16 * unroll : lanes / key_lanes * unroll;
  }
};

// Whether a device has the subgroups of 32 that decode exchanges values in. Without them every
// exchange goes through shared memory: attention_plain is then the better way, for one query too.
bool suits_decode(const ir::Capabilities& capabilities);

// What suits a GPU with subgroups of 32: by lanes, in f32, and by fragments.
DecodeTile decode_tile(const AttentionOptions& options, uint32_t queries);
DecodeTile fragment_decode_tile(const AttentionOptions& options, uint32_t queries);
// The better of the two: fragments for several rows where the device has them and copies that run
// ahead.
DecodeTile decode_tile_for(const AttentionOptions& options, uint32_t queries,
                           const ir::Capabilities& capabilities);

// How many splits keep all compute units of a device busy; fixed when a plan is made, whatever the
// lengths will be.
uint32_t decode_split_kv(const AttentionOptions& options, const DecodeTile& tile, uint32_t kv_heads,
                         uint32_t sequences, uint32_t compute_units);

// Grid: splits x (kv_heads * ceil(queries * group / rows)) x sequences. Partial results:
// partial_elements() f32. With direct: one split, buffer sinks before out where the option is set.
// With merges: after the inputs sinks (option), partial, counters (u32, decode_counters(); zero
// before the launch and after it) and out.
ir::Kernel attention_decode(const AttentionOptions& options, const DecodeTile& tile);
std::array<uint32_t, 3> decode_grid(const AttentionOptions& options, const DecodeTile& tile,
                                    uint32_t splits, uint32_t kv_heads, uint32_t sequences);
uint64_t decode_counters(const AttentionOptions& options, const DecodeTile& tile, uint32_t kv_heads,
                         uint32_t sequences);
// Whether a device can merge in the launch itself, and is done sooner so.
bool suits_merges(const AttentionOptions& options, const DecodeTile& tile, uint32_t splits,
                  const ir::Capabilities& capabilities);
// Rows: of q over all sequences.
uint64_t partial_elements(const AttentionOptions& options, uint32_t splits, uint32_t kv_heads,
                          uint32_t rows);

// The same bits as with merges where no group has all keys. Buffers partial, spans, sinks (option),
// out. Parameters: splits, then those of AttentionParams.
ir::Kernel attention_merge(const AttentionOptions& options, const DecodeTile& tile);
std::array<uint32_t, 3> merge_grid(const AttentionOptions& options, const DecodeTile& tile,
                                   uint32_t kv_heads, uint32_t sequences);

// --- Prompt: many queries, scores in matrix fragments, never in memory. The result is written
// once.

struct PromptTile {
  uint32_t warps = 4;   // subgroups
  uint32_t blocks = 2;  // of 16 queries, for each of them
  uint32_t keys = 64;   // of one turn, a multiple of 16
  uint32_t stages = 2;  // of keys and values under way; f16 caches only
  bool q_in_registers = false;
  uint32_t subgroup = 32;  // lanes of each

  uint32_t queries() const { return warps * blocks * 16; }
};

PromptTile prompt_tile(const AttentionOptions& options);

// For devices with f16 fragments. q, and the weights of the values, are rounded to f16. Grid: query
// heads x ceil(most queries / tile.queries()) x sequences.
ir::Kernel attention_prompt(const AttentionOptions& options, const PromptTile& tile);

// --- Prompt in plain f32, for every device.

struct PlainTile {
  uint32_t queries = 16, keys = 16;
  static constexpr uint32_t kLanesOfQuery = 4;
  uint32_t lanes() const { return queries * kLanesOfQuery; }
};

// The largest tile for this much shared memory.
PlainTile plain_tile(const AttentionOptions& options, uint32_t shared_bytes);

// Grid: query heads x ceil(most queries / tile.queries) x sequences.
ir::Kernel attention_plain(const AttentionOptions& options, const PlainTile& tile);

}  // namespace prism::ops
