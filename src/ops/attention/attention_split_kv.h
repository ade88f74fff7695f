// Parts shared by the decode kernels: splitting the keys, the layout of partial results, and
// reducing them over the subgroups of a group. Private to attention.
#pragma once

#include <functional>

#include "ops/attention/attention_parts.h"

namespace prism::ops {

inline constexpr uint32_t kDecodeSubgroup = 32;

// Elements of a partial result, in multiples of 16 bytes: the sums of a row, then its maximum and
// sum of weights in the last 16 bytes.
uint32_t partial_stride(const AttentionOptions& options);
uint32_t blocks_of_rows(const AttentionOptions& options, const DecodeTile& tile);

// Up to this many keys, a single group of a block processes all of them, if groups merge.
uint32_t keys_alone(const DecodeTile& tile);

// The range of keys that the rows of a block see and its splits; the same in decode and merge.
// With a window, begin is at or before the first key that they see, at the start of an iteration.
struct Cut {
  dsl::Value splits, begin, end, each;
  dsl::Value seen;   // the first key that a row sees
  dsl::Value alone;  // the first split has all keys
  Cut(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span,
      dsl::Value block, dsl::Value splits);
};

// The rows of a decode or merge group: a block of one kv head, in sequence group_id(2). Lets the
// next launch start. Made before the wait for the previous one, because other loads depend on its
// span.
struct RowBlock {
  const AttentionArguments& arguments;
  const DecodeTile& tile;
  Span span;
  dsl::Value kv_head, block, kv_heads;
  dsl::Value used;  // whether the sequence has queries in this block

  RowBlock(const AttentionArguments& arguments, const DecodeTile& tile);
  // Row r of the block: its query, head and row of q, and whether it exists.
  struct Row {
    dsl::Value query, head, row, wanted;
  };
  Row at(dsl::Value r) const;
  // Index of a row's partial result for a split.
  dsl::Value partial(const Row& row, dsl::Value splits, dsl::Value split) const;
};

// Shared arrays with the sums of each subgroup.
struct SubgroupSums {
  uint32_t width;  // elements of a row: a multiple of four
  dsl::Array sums, maxima, weights;

  SubgroupSums(const DecodeTile& tile, uint32_t width);
  // Index of a row's maximum and weight for this subgroup; its sums start at row * width.
  dsl::Value row(const DecodeTile& tile, dsl::Value r) const;
  // After a barrier: writes the group's rows as partial results of a split, or as the result.
  void write_partial(const RowBlock& rows, dsl::Value splits, dsl::Value split) const;
  void write_result(const RowBlock& rows) const;
  // Replaces each subgroup's sums by its share of the partial results; called by the whole group.
  // fours: batches of four splits that a lane loads at once; it does not change the sums.
  void read_partial(const RowBlock& rows, const Cut& cut, uint32_t fours) const;

 private:
  struct Whole {
    dsl::Value sum, top, weight;
  };
  Whole over_subgroups(const DecodeTile& tile, dsl::Value r, dsl::Value at) const;
};

// A merge group has one row, so that all compute units are used.
DecodeTile merge_tile(const DecodeTile& decode);

// Selects the arguments of a decode launch.
AttentionArguments::Result result_of(const DecodeTile& tile);

// The keys of a split; those before `seen` are hidden from all rows.
struct SplitKeys {
  dsl::Value begin, end, seen;
  CachePositions& positions;
};

// Waits for the previous launch, calls attend, which leaves the sums of every subgroup, for this
// group's split, and writes the result.
void with_split(const RowBlock& rows, const SubgroupSums& sums,
                const std::function<void(const SplitKeys&)>& attend);

// attention_decode for tiles with stages.
ir::Kernel attention_decode_by_fragments(const AttentionOptions& options, const DecodeTile& tile);
uint64_t fragment_shared_bytes(const AttentionOptions& options, const DecodeTile& tile);

}  // namespace prism::ops
