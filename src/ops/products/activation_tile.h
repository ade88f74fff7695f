// Activations rounded to 8-bit integers in shared memory: what block-quantised weights are
// multiplied by.
#pragma once

#include <optional>
#include <vector>

#include "prism/kernel.h"

namespace prism::ops {

inline constexpr float kRoundedUnit = 1.0f / 127.0f;  // scale = largest magnitude * this
// An element rounded, of a block whose largest magnitude is given; four of them.
dsl::Value round_one(dsl::Value element, dsl::Value largest);
std::vector<dsl::Value> round_four(dsl::Value four, dsl::Value largest);
// The largest magnitude of the 32 elements that eight lanes side by side hold; NaN where one is.
dsl::Value largest_of_block(dsl::Value four);

// `rows` rows of `elements` columns of x. Every lane of the group takes part in fill, four elements
// at a time; then a barrier, then any lane reads any unit.
class ActivationTile {
 public:
  // unit: 16 or 32 elements that one lane reads together; sum_elements: of one sum, 16 or 32; 0
  // where no sums are wanted; shuffles: the scales by shuffles of subgroups, else by shared atomics
  // (where subgroups are made of shared memory every shuffle would be two barriers).
  ActivationTile(uint32_t rows, uint32_t elements, uint32_t unit, uint32_t sum_elements,
                 bool shuffles);

  // Columns [start, min(start + elements, k)) of the rows; zeros for rows from `row_count` on.
  // `row_start(i)` gives the index in x of row i. k is a multiple of 32. Every lane has passed a
  // barrier since it last read the tile.
  void fill(const dsl::In& x, uint32_t lanes, dsl::Value start, dsl::Value k, dsl::Value row_count,
            const std::function<dsl::Value(dsl::Value)>& row_start) const;

  std::vector<dsl::Value> quads(uint32_t row, dsl::Value unit) const;  // unit / 4 words
  dsl::Value scale(uint32_t row, dsl::Value unit) const;               // f32
  std::vector<dsl::Value> sums(uint32_t row, dsl::Value unit) const;   // scale * sum of the bytes

  static uint64_t bytes(uint32_t rows, uint32_t elements, uint32_t sum_elements);

 private:
  void fill_by_shuffles(const dsl::In& x, uint32_t lanes, dsl::Value start, dsl::Value quads,
                        dsl::Value row_count,
                        const std::function<dsl::Value(dsl::Value)>& row_start) const;
  void fill_by_atomics(const dsl::In& x, uint32_t lanes, dsl::Value start, dsl::Value quads,
                       dsl::Value row_count,
                       const std::function<dsl::Value(dsl::Value)>& row_start) const;
  void for_rows(const std::function<void(dsl::Value)>& body) const;
  dsl::Value place(dsl::Value row, dsl::Value quad) const;

  uint32_t rows_, elements_, unit_, sum_elements_;
  bool shuffles_;
  dsl::Array bytes_, scales_;
  std::optional<dsl::Array> sums_;
};

}  // namespace prism::ops
