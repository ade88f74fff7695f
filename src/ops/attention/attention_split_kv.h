// What the kernels of decode attention share: how the keys are cut into splits, where a split's
// result lies, and how the subgroups of a group make it. For .cpp files of attention only.
#pragma once

#include <functional>

#include "ops/attention/attention_parts.h"

namespace prism::ops {

inline constexpr uint32_t kDecodeSubgroup = 32;

// A partial result in whole 16 bytes: the sums of a row, then its maximum and its sum of weights in
// the last.
uint32_t partial_stride(const AttentionOptions& options);
uint32_t blocks_of_rows(const AttentionOptions& options, const DecodeTile& tile);

// Up to so many keys one group of a block takes them all, where groups merge.
uint32_t keys_alone(const DecodeTile& tile);

// Which keys the rows of a block see, and how they are cut; the same for decode and merge.
struct Cut {
  dsl::Value splits, begin, end, each;
  dsl::Value alone;  // all keys are the first split's
  Cut(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span,
      dsl::Value block, dsl::Value splits);
};

// The rows that a group of decode or merge has: a block of a kv head's, of the sequence
// group_id(2). Its span is asked for before the launch waits for the one before it: what else is
// loaded depends on it.
struct RowBlock {
  const AttentionArguments& arguments;
  const DecodeTile& tile;
  Span span;
  dsl::Value kv_head, block, kv_heads;
  dsl::Value used;  // whether the sequence has such queries

  RowBlock(const AttentionArguments& arguments, const DecodeTile& tile);
  // Row r of the block, where it stands and whether it is there.
  struct Row {
    dsl::Value query, head, row, wanted;
  };
  Row at(dsl::Value r) const;
  // Where a row's partial result of a split lies.
  dsl::Value partial(const Row& row, dsl::Value splits, dsl::Value split) const;
};

// Shared arrays in which each subgroup of a group leaves what it has summed.
struct SubgroupSums {
  uint32_t width;  // elements of a row: a multiple of four
  dsl::Array sums, maxima, weights;

  SubgroupSums(const DecodeTile& tile, uint32_t width);
  // Of the subgroup at hand: index of a row's maximum and weight; its sums are from row * width on.
  dsl::Value row(const DecodeTile& tile, dsl::Value r) const;
  // After a barrier: the whole group's rows, as a split's partial results or as the result.
  void write_partial(const RowBlock& rows, dsl::Value splits, dsl::Value split) const;
  void write_result(const RowBlock& rows) const;
  // Every subgroup's share of the partial results, in place of what it has summed; the whole group
  // does it. fours: how many times four splits a lane asks for at once; the sums are the same.
  void read_partial(const RowBlock& rows, const Cut& cut, uint32_t fours) const;

 private:
  struct Whole {
    dsl::Value sum, top, weight;
  };
  Whole over_subgroups(const DecodeTile& tile, dsl::Value r, dsl::Value at) const;
};

// A group of the merge has one row: all compute units take part.
DecodeTile merge_tile(const DecodeTile& decode);

// The arguments of a decode launch.
AttentionArguments::Result result_of(const DecodeTile& tile);

// Attends with a split of the keys, in a group of a decode launch, and writes what comes of it.
// attend (begin, end) leaves every subgroup's sums.
void with_split(const RowBlock& rows, const SubgroupSums& sums,
                const std::function<void(dsl::Value, dsl::Value)>& attend);

// Decode by fragments: of attention_decode, for tiles with stages.
ir::Kernel attention_decode_by_fragments(const AttentionOptions& options, const DecodeTile& tile);
uint64_t fragment_shared_bytes(const AttentionOptions& options, const DecodeTile& tile);

}  // namespace prism::ops
