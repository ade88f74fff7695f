// Building blocks of the attention kernels: arguments, cache reads, masking and fast exponentials.
// Private to attention.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/attention/attention_kernels.h"
#include "prism/kernel.h"

namespace prism::ops {

// Scores are in units of log2, because devices have exp2.
inline constexpr float kLog2E = 1.4426950408889634f;
// A score with zero weight, and an initial maximum above it: avoids infinities and NaN.
inline constexpr float kHidden = -1e30f, kNoMaximum = -5e29f;

void check_options(const AttentionOptions& options, const char* kernel);
std::string option_name(const AttentionOptions& options);  // "d128_g4_f16_causal", for kernel names

// 2^x for x <= 0, accurate to 2^-22; small results may flush to zero.
dsl::Value fast_exp2(dsl::Value x);
// The maximum; neither argument may be NaN.
dsl::Value fast_max(dsl::Value a, dsl::Value b);

// The arguments of the kernel under construction; the constructor declares them in the documented
// order.
struct AttentionArguments {
  // What the kernel writes: the result, partial results of splits, the merged partial results, or
  // partial results and then the merged result.
  enum class Result { out, partial, merged, both };
  AttentionArguments(const AttentionOptions& options, Result result);

  const AttentionOptions& options;
  std::optional<dsl::In> q, k, v, spans, table, mask, sinks;
  std::optional<dsl::Array> partial, out, sums, counters;
  std::optional<dsl::Value> splits;
  std::optional<dsl::Value> q_row, q_head, out_row, out_head, kv_slot, kv_position, kv_head, v_slot,
      v_position, v_head, table_row, factor_offset, factor_head, v_factor_offset, scale, window,
      soft_cap, mask_row, mask_head, slope_step, slope_heads;

  // The factor on q that gives scores in units of log2 (with a soft cap: in units of the cap).
  dsl::Value q_factor() const;
  // Writes the sum of a query's weights: 2^maximum * weight. A query without keys gets a large one.
  void store_sum(dsl::Value wanted, dsl::Value row, dsl::Value head, dsl::Value heads,
                 dsl::Value maximum, dsl::Value weight) const;
  // What the scores of a query and head depend on beside the product.
  struct Query {
    std::optional<dsl::Value> mask_start, slope, position;
  };
  // row: row of q. slope: slope_of(head), which callers compute once.
  Query query(dsl::Value row, dsl::Value head, const std::optional<dsl::Value>& slope,
              dsl::Value position) const;
  std::optional<dsl::Value> slope_of(dsl::Value head) const;
  // Whether score() changes the product.
  bool scores_differ() const { return options.soft_cap || options.mask || options.slopes; }
  // Caps and masks the product of the scaled q and a key.
  dsl::Value score(dsl::Value product, const Query& query, dsl::Value position) const;
  // Loads four elements of q from d on as f32; zeros if not wanted and beyond the head.
  std::vector<dsl::Value> four_of_q(dsl::Value wanted, dsl::Value row, dsl::Value head,
                                    dsl::Value d) const;
  // Stores an element of the result, 0 <= d < values(). If rounded, all lanes of the group must
  // call it, with consecutive elements in consecutive lanes.
  void store(dsl::Value wanted, dsl::Value row, dsl::Value head, dsl::Value d,
             dsl::Value value) const;
  // The first key that the query at a position sees.
  dsl::Value first_seen(dsl::Value query_position) const;
  // The end of the keys that it sees, of `keys` in all.
  dsl::Value end_seen(dsl::Value query_position, dsl::Value keys) const;
  // Whether the query at a position sees the key; the caller checks key < keys.
  dsl::Value sees(dsl::Value query_position, dsl::Value key) const;
};

// The sequence that a group processes.
struct Span {
  dsl::Value first_row, queries, keys, slot;
  Span(const dsl::In& spans, dsl::Value sequence);
  explicit Span(dsl::Value four);
  // The position of a query among the keys.
  dsl::Value position(dsl::Value query) const { return keys - queries + query; }
};

// The positions [begin, end) of a sequence that a group reads in tiles of `keys`: in one slot of
// the cache, or in blocks that the table lists. begin is a multiple of `keys`; with a window,
// positions before `seen` are hidden and not read.
class CachePositions {
 public:
  // subgroup: each lane of a subgroup of this size looks up the block of another tile, so that the
  // loop over the tiles rarely loads from the table. 0: each tile looks up the block of the next.
  CachePositions(const AttentionArguments& arguments, dsl::Value slot, dsl::Value begin,
                 dsl::Value end, dsl::Value seen, uint32_t keys, uint32_t subgroup = 0);
  // Called for each tile in order, before it is read. If a tile is within one block, all its
  // positions share one look-up. With subgroups only in group-uniform control flow.
  void enter(dsl::Value first);
  // Whether the position is read.
  dsl::Value holds(dsl::Value position) const;
  // The index of the position's first element in head 0 of k or of v (q8_0: byte).
  dsl::Value element(dsl::Value position, bool of_values) const;

 private:
  dsl::Value block_at(dsl::Value position) const;
  // Values of their own length have their own strides.
  bool are_apart(bool of_values) const;
  dsl::Value slot_step(bool of_values) const;
  dsl::Value position_step(bool of_values) const;
  // The index of a position that is in this block.
  dsl::Value in_block(dsl::Value block, dsl::Value position, bool of_values) const;
  void set_bases(const std::function<dsl::Value(bool)>& base);

  const AttentionArguments& arguments_;
  dsl::Value slot_, begin_, end_, seen_;
  uint32_t keys_, subgroup_;
  // The first position of the tile, in blocks; none: that of the sequence.
  std::optional<dsl::Value> tile_;
  // Its index in keys and values; none: each position looks up its own.
  std::optional<dsl::Value> bases_[2];
  // The block that was looked up last: of the next tile, or of this lane's tile.
  std::optional<dsl::Var> found_;
};

// One head of k or v as 16-byte chunks, as many as a key has; zeros follow the last element.
class CacheHead {
 public:
  enum class Of { keys, values };
  CacheHead(const AttentionArguments& arguments, Of of, const CachePositions& positions,
            dsl::Value head);
  static uint32_t chunk_elements(const AttentionOptions& options);
  static uint32_t chunks(const AttentionOptions& options);  // of a key
  uint32_t chunks() const;                                  // with elements of this head
  const dsl::In& cache() const { return cache_; }
  // Whether all chunks are 16 aligned bytes of memory.
  static bool whole_chunks(const AttentionOptions& options);

  // A raw chunk, zeros if not wanted: loaded early, unpacked late.
  struct Chunk {
    std::vector<dsl::Value> words;     // 4 x u32, or
    std::vector<dsl::Value> elements;  // f32, if a head is not a whole number of words
    std::optional<dsl::Value> factor;  // q8_0: f32
  };
  Chunk load(dsl::Value wanted, dsl::Value position, dsl::Value chunk) const;
  // The elements; for q8_0 without the factor.
  std::vector<dsl::Value> unpack(const Chunk& chunk) const;
  // q8_0: the elements times the factor, exact if the device rounds fma once.
  std::vector<dsl::Value> unpack_times_factor(const Chunk& chunk) const;
  // Index of the first element at a position, for async copies of f16 caches.
  dsl::Value element(dsl::Value position) const;

 private:
  const AttentionArguments& arguments_;
  const bool values_;
  const uint32_t dim_;
  const dsl::In& cache_;
  const CachePositions& positions_;
  dsl::Value base_;
  std::optional<dsl::Value> factor_base_;
};

}  // namespace prism::ops
