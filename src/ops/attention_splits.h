// What the kernels of decode attention share: how the keys are cut into splits, where a split's
// result lies, and how the subgroups of a group make it. For .cpp files of attention only.
#pragma once

#include "ops/attention_parts.h"

namespace prism::ops {

inline constexpr uint32_t kDecodeSubgroup = 32;

// A partial result in whole 16 bytes: the sums of a row, then its maximum and its sum of weights in
// the last.
uint32_t partial_stride(const AttentionOptions& options);
uint32_t blocks_of_rows(const AttentionOptions& options, const DecodeTile& tile);

// Which keys the rows of a block see, and how they are cut; the same for decode and merge.
struct Cut {
  dsl::Value begin, end, each;
  Cut(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span,
      dsl::Value block, dsl::Value splits);
};

// What a group of a decode launch takes: a block of rows of a kv head, and a split of the keys.
struct DecodeShare {
  dsl::Value kv_head, block, begin, end;
  dsl::Value used;  // whether there is anything to do
  DecodeShare(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span);
};

// Shared arrays in which each subgroup of a group leaves what it has summed.
struct SubgroupSums {
  uint32_t width;  // elements of a row
  dsl::Array sums, maxima, weights;

  SubgroupSums(const DecodeTile& tile, uint32_t width);
  // Of the subgroup at hand: index of a row's maximum and weight; its sums are from row * width on.
  dsl::Value row(const DecodeTile& tile, dsl::Value r) const;
  // After a barrier: the whole group's rows to partial, or to out where the tile is direct.
  void write(const AttentionArguments& arguments, const DecodeTile& tile, const Span& span,
             dsl::Value kv_head, dsl::Value block) const;
};

// A chunk of the cache in variables: asked for in one turn of a loop, used in the next.
class HeldChunk {
 public:
  explicit HeldChunk(const AttentionOptions& options);
  void hold(const CacheHead::Chunk& chunk);
  CacheHead::Chunk chunk() const;

 private:
  std::vector<dsl::Var> words_, elements_, factor_;
};

// Decode by fragments: of attention_decode, for tiles with stages.
ir::Kernel attention_decode_by_fragments(const AttentionOptions& options, const DecodeTile& tile);
uint64_t fragment_shared_bytes(const AttentionOptions& options, const DecodeTile& tile);

}  // namespace prism::ops
