// Packs batches into the words of a plan's input.
#include "llm/model/batch.h"

#include <algorithm>
#include <array>

#include "prism/device.h"

namespace prism::llm {

BatchLayout::BatchLayout(const BatchShape& shape, const KvCache& cache)
    : shape_(shape), table_entries_(cache.table_entries()) {
  constexpr int64_t kStep = kRangeAlignment / sizeof(int32_t);
  const auto place = [&](int64_t count) {
    const int64_t first = words_;
    words_ += (count + kStep - 1) / kStep * kStep;
    return first;
  };
  tokens_ = place(shape.rows);
  positions_ = place(shape.rows);
  for (size_t group = 0; group < cache.groups(); ++group) places_.push_back(place(shape.rows * 2));
  wanted_ = place(shape.wanted);
  spans_ = place(shape.sequences * 4);
  texts_ = place(cache.states().is_used() ? shape.sequences * 4 : 0);
  encoded_spans_ = place(cache.has_encoded() ? shape.sequences * 4 : 0);
  encoded_ = place(cache.has_encoded() ? shape.rows : 0);
  for (size_t group = 0; group < cache.groups(); ++group)
    tables_.push_back(place(shape.sequences * table_entries_));
}

Tensor BatchLayout::places(const Tensor& words, size_t group) const {
  return part(words, places_[group], shape_.rows * 2).reshape({shape_.rows, 2});
}

Tensor BatchLayout::table(const Tensor& words, size_t group) const {
  return part(words, tables_[group], shape_.sequences * table_entries_)
      .reshape({shape_.sequences, table_entries_});
}

std::vector<int32_t> BatchLayout::pack(std::span<const SequencePart> parts,
                                       const KvCache& cache) const {
  std::vector<int32_t> words(static_cast<size_t>(words_), 0);
  const auto at = [&](int64_t place) -> int32_t& { return words[static_cast<size_t>(place)]; };
  int64_t row = 0, wanted = 0, sequence = 0;
  for (const SequencePart& part : parts) {
    const auto count = static_cast<int64_t>(part.tokens.size());
    int32_t* const span = &at(spans_ + 4 * sequence);
    span[0] = static_cast<int32_t>(row);
    span[1] = static_cast<int32_t>(count);
    span[2] = static_cast<int32_t>(part.first_position + count);
    span[3] = static_cast<int32_t>(sequence++);
    for (int64_t i = 0; i < count; ++i, ++row) {
      at(tokens_ + row) = part.tokens[static_cast<size_t>(i)];
      const int64_t position = part.first_position + i;
      at(positions_ + row) = static_cast<int32_t>(position);
      for (size_t group = 0; group < places_.size(); ++group) {
        at(places_[group] + 2 * row) = static_cast<int32_t>(position);
        at(places_[group] + 2 * row + 1) =
            static_cast<int32_t>(cache.row(group, part.slot, position));
      }
      if (part.wanted == Wanted::all || (part.wanted == Wanted::last && i + 1 == count))
        at(wanted_ + wanted++) = static_cast<int32_t>(row);
    }
  }
  // Padding rows are written to row 0, in the block that no text uses.
  std::ranges::copy(pack_tables(parts, cache), words.begin() + tables_at());
  return words;
}

std::vector<int32_t> BatchLayout::pack_tables(std::span<const SequencePart> parts,
                                              const KvCache& cache) const {
  std::vector<int32_t> words(static_cast<size_t>(words_ - tables_at()), CacheBlocks::kNone);
  for (size_t group = 0; group < tables_.size(); ++group)
    for (size_t i = 0; i < parts.size(); ++i)
      std::ranges::copy(
          cache.table(group, parts[i].slot),
          words.begin() + tables_[group] - tables_at() + static_cast<int64_t>(i) * table_entries_);
  int32_t row = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto count = static_cast<int32_t>(parts[i].tokens.size());
    const auto put = [&](int64_t place, const std::array<int32_t, 4>& text) {
      std::ranges::copy(text, words.begin() + place - tables_at() + static_cast<int64_t>(i) * 4);
    };
    if (cache.states().is_used())
      put(texts_, {row, count, 0, cache.states().block_of(parts[i].slot)});
    if (cache.has_encoded()) {
      const auto encoded = static_cast<int32_t>(cache.encoded(parts[i].slot));
      put(encoded_spans_, {row, count, encoded, static_cast<int32_t>(i)});
      std::fill_n(words.begin() + encoded_ - tables_at() + row, count, encoded);
    }
    row += count;
  }
  return words;
}

}  // namespace prism::llm
