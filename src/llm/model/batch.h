// The inputs of a model's plan that change with every run, packed as device data: tokens,
// positions, KV cache rows and tables, sequence spans and the rows to return.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "llm/model/kv_cache.h"
#include "prism/tensor.h"

namespace prism::llm {

enum class Wanted : uint8_t { none, last, all };

// Consecutive tokens of one sequence. The tokens before first_position are in the KV cache.
struct SequencePart {
  int32_t slot = 0;
  int32_t first_position = 0;
  std::span<const int32_t> tokens;
  Wanted wanted = Wanted::last;  // rows whose logits are returned
};

// The batch shape that a plan is compiled for. Smaller batches are padded.
struct BatchShape {
  int64_t rows = 1;
  int64_t sequences = 1;
  int64_t wanted = 1;         // number of returned rows
  bool each_one_row = false;  // one row per sequence, all returned in order
  auto operator<=>(const BatchShape&) const = default;
};

// The offsets of each part in one i32 tensor, so that a batch needs one upload. Parts start at
// multiples of kRangeAlignment, which views bound to launches require.
class BatchLayout {
 public:
  BatchLayout(const BatchShape& shape, const KvCache& cache);
  int64_t words() const { return words_; }
  const BatchShape& shape() const { return shape_; }

  // Views of a tensor with words() elements.
  Tensor tokens(const Tensor& words) const { return part(words, tokens_, shape_.rows); }
  Tensor positions(const Tensor& words) const { return part(words, positions_, shape_.rows); }
  // Of a group of layers: [rows, 2], position and KV cache row; [sequences, entries], blocks.
  Tensor places(const Tensor& words, size_t group) const;
  Tensor table(const Tensor& words, size_t group) const;
  Tensor wanted(const Tensor& words) const { return part(words, wanted_, shape_.wanted); }
  // [sequences, 4]: see cached_attention; sequences have the rows of the tables in order.
  Tensor spans(const Tensor& words) const { return fours(words, spans_); }
  // [sequences, 4]: see prism/ops/recurrence.h.
  Tensor texts(const Tensor& words) const { return fours(words, texts_); }
  // Of a decoder: [sequences, 4], spans over the encoder's positions; [rows], how many these are.
  Tensor encoded_spans(const Tensor& words) const { return fours(words, encoded_spans_); }
  Tensor encoded(const Tensor& words) const { return part(words, encoded_, shape_.rows); }

  // Packs a batch, which must fit into shape(). The cache has blocks for all its positions.
  std::vector<int32_t> pack(std::span<const SequencePart> parts, const KvCache& cache) const;
  // Packs the tables alone, where states are and what is encoded: words from tables_at() on.
  std::vector<int32_t> pack_tables(std::span<const SequencePart> parts, const KvCache& cache) const;

  // Offsets of the parts, for ops that modify them in place.
  int64_t tokens_at() const { return tokens_; }
  int64_t positions_at() const { return positions_; }
  int64_t spans_at() const { return spans_; }
  int64_t places_at(size_t group) const { return places_[group]; }
  int64_t table_at(size_t group) const { return tables_[group]; }
  int64_t tables_at() const { return texts_; }
  int64_t table_entries() const { return table_entries_; }

 private:
  static Tensor part(const Tensor& words, int64_t first, int64_t count) {
    return words.slice(0, first, first + count);
  }
  Tensor fours(const Tensor& words, int64_t first) const {
    return part(words, first, shape_.sequences * 4).reshape({shape_.sequences, 4});
  }
  BatchShape shape_;
  int64_t tokens_ = 0, positions_ = 0, wanted_ = 0, spans_ = 0, texts_ = 0, words_ = 0;
  int64_t encoded_spans_ = 0, encoded_ = 0;
  int64_t table_entries_ = 0;
  std::vector<int64_t> places_, tables_;  // by group; the tables are last
};

}  // namespace prism::llm
