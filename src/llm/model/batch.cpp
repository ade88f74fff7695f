// Packs batches into the words of a plan's input.
#include "llm/model/batch.h"

#include "prism/device.h"

namespace prism::llm {

BatchLayout::BatchLayout(const BatchShape& shape) : shape_(shape) {
  constexpr int64_t kStep = kRangeAlignment / sizeof(int32_t);
  const auto place = [&](int64_t count) {
    const int64_t first = words_;
    words_ += (count + kStep - 1) / kStep * kStep;
    return first;
  };
  tokens_ = place(shape.rows);
  positions_ = place(shape.rows);
  places_ = place(shape.rows * 2);
  wanted_ = place(shape.wanted);
  spans_ = place(shape.sequences * 4);
}

Tensor BatchLayout::spans(const Tensor& words) const {
  return part(words, spans_, shape_.sequences * 4).reshape({shape_.sequences, 4});
}

Tensor BatchLayout::places(const Tensor& words) const {
  return part(words, places_, shape_.rows * 2).reshape({shape_.rows, 2});
}

std::vector<int32_t> BatchLayout::pack(std::span<const SequencePart> parts,
                                       const KvCache& cache) const {
  std::vector<int32_t> words(static_cast<size_t>(words_), 0);
  const auto at = [&](int64_t place) -> int32_t& { return words[static_cast<size_t>(place)]; };
  int64_t row = 0, wanted = 0, sequence = 0;
  for (const SequencePart& part : parts) {
    const auto count = static_cast<int64_t>(part.tokens.size());
    int32_t* const span = &at(spans_ + 4 * sequence++);
    span[0] = static_cast<int32_t>(row);
    span[1] = static_cast<int32_t>(count);
    span[2] = static_cast<int32_t>(part.first_position + count);
    span[3] = part.slot;
    for (int64_t i = 0; i < count; ++i, ++row) {
      at(tokens_ + row) = part.tokens[static_cast<size_t>(i)];
      const int64_t position = part.first_position + i;
      at(positions_ + row) = at(places_ + 2 * row) = static_cast<int32_t>(position);
      at(places_ + 2 * row + 1) = static_cast<int32_t>(cache.row(part.slot, position));
      if (part.wanted == Wanted::all || (part.wanted == Wanted::last && i + 1 == count))
        at(wanted_ + wanted++) = static_cast<int32_t>(row);
    }
  }
  for (; row < shape_.rows; ++row)
    at(places_ + 2 * row + 1) = static_cast<int32_t>(cache.spare_row());
  return words;
}

}  // namespace prism::llm
