// Activations rounded to 8-bit integers in shared memory, for products with block-quantised
// weights.
#pragma once

#include <optional>
#include <vector>

#include "prism/kernel.h"

namespace prism::ops {

inline constexpr float kRoundedUnit = 1.0f / 127.0f;  // scale = largest magnitude * this
// Rounds one element, or four, of a block whose largest magnitude is given.
dsl::Value round_one(dsl::Value element, dsl::Value largest);
std::vector<dsl::Value> round_four(dsl::Value four, dsl::Value largest);
// The largest magnitude of the 32 elements in eight neighbouring lanes; NaN if one is NaN.
dsl::Value largest_of_block(dsl::Value four);

// A tile of `rows` x `elements` columns of x. All lanes of the group call fill, four elements at a
// time; after a barrier, any lane can read any unit.
class ActivationTile {
 public:
  // unit: the 16 or 32 elements that a lane reads together. sum_elements: elements per sum, 16 or
  // 32; 0: no sums. shuffles: compute the scales with subgroup shuffles, else with shared atomics
  // (where shuffles are emulated, each costs two barriers).
  ActivationTile(uint32_t rows, uint32_t elements, uint32_t unit, uint32_t sum_elements,
                 bool shuffles);

  // Fills columns [start, min(start + elements, k)); zeros for rows from `row_count` on.
  // `row_start(i)` gives the index in x of row i. k is a multiple of 32. The caller puts a barrier
  // between the last read of the tile and fill.
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
