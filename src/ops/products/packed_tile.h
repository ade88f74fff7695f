// Tiles of block-quantised weights in shared memory, packed as in the buffer, and their decoding to
// pairs of f16 as matrix fragments take them.
#pragma once

#include <optional>
#include <vector>

#include "ops/products/weight_units.h"
#include "prism/kernel.h"

namespace prism::ops {

// `rows` x `columns` elements in each of `stages` slots, and the decoded scales of two of them.
// columns is a power of two from 128 on. Lanes of the whole group copy; after async_wait and a
// barrier they decode the scales; after another barrier any lane can decode any pair.
class PackedTile {
 public:
  PackedTile(ElementType type, uint32_t rows, uint32_t columns, uint32_t stages, uint32_t lanes);

  // Copies rows [first_row, first_row + rows) from column `start` on, a multiple of `columns`;
  // zeros from row n on and from column k on; without k, all columns exist.
  void copy(const dsl::In& weights, const WeightParams& layout, dsl::Value slot,
            dsl::Value first_row, dsl::Value n, dsl::Value start,
            const std::optional<dsl::Value>& k) const;

  // Decodes the scales of the tile in `slot`, which starts at column `start`, into set 0 or 1.
  void decode_scales(dsl::Value slot, dsl::Value set, dsl::Value start) const;

  // Weights 16 rows x 16 columns as a fragment: its first row and column in the tile. at: the part
  // of the column that is known, a multiple of 16; column is a multiple of 32.
  struct Place {
    dsl::Value slot, set, row, column;
    uint32_t at = 0;
  };
  // The elements k and k + 1, k even, of a row of the fragment: two f16. Scale and offset are
  // rounded to f16 before; those below the normal numbers are exact, since factors are f16 and
  // scales are integers.
  dsl::Value pair(const Place& place, dsl::Value row, dsl::Value k) const;

  static uint64_t bytes(ElementType type, uint32_t rows, uint32_t columns, uint32_t stages);

 private:
  // The part of a row in one plane. It is copied in chunks of 16 bytes.
  struct Plane {
    uint32_t bytes = 0;   // per 256 elements; 0: the type has no such plane
    uint32_t chunks = 0;  // in the tile
    uint32_t at = 0;      // in words from the start of the tile's row
    dsl::Value first_word(dsl::Value start) const;  // of the row's plane that the tile holds
  };
  struct Planes {
    Plane quants, high, scales, factors;
    uint32_t row_words = 0;
  };
  static Planes planes_of(ElementType type, uint32_t columns);

  // Two codes as the f16 numbers 1024 + code * 2^shift; an element is (code - zero) * scale +
  // offset.
  struct Codes {
    dsl::Value numbers;
    uint32_t shift, zero;
  };
  Codes codes(const Place& place, dsl::Value row_start, dsl::Value k) const;
  uint32_t part_elements() const { return format_.scale_elements == 16 ? 16 : 32; }
  uint32_t parts() const { return columns_ / part_elements(); }
  bool has_offset() const { return format_.has_min() || format_.has_offset(); }

  ElementType type_;
  PlaneFormat format_;
  uint32_t rows_, columns_, lanes_;
  Planes planes_;
  dsl::Array tile_, scales_;
};

}  // namespace prism::ops
