// Sources of a product's operand tiles: async copies, or loads that are converted or decoded on
// their way into shared memory.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ops/products/weight_units.h"
#include "prism/kernel.h"

namespace prism::ops {

// A stored matrix as seen by tiles. `outer` counts stored rows, `inner` is along a row.
struct StoredMatrix {
  dsl::Value outer_limit, inner_limit;
  dsl::Value stride, start;  // elements between rows; index of the first row
};

// A tile of `outer` x `inner` elements in shared memory, with rows of `row_elements()`. In each
// turn every lane handles one chunk of a row.
class TileSource {
 public:
  TileSource(const dsl::Array& tile, uint32_t outer, uint32_t inner, uint32_t chunk, uint32_t lanes)
      : tile_(tile), outer_(outer), inner_(inner), chunk_(chunk), lanes_(lanes) {}
  virtual ~TileSource() = default;

  uint32_t turns() const { return (outer_ * inner_ / chunk_ + lanes_ - 1) / lanes_; }
  virtual bool runs_ahead() const = 0;  // copies asynchronously; else load, then put
  // Elements start at (outer_start, inner_start) of the matrix; the slot is the tile's stage. Zeros
  // beyond the matrix and if not wanted.
  virtual void copy(uint32_t, dsl::Value, dsl::Value, dsl::Value, dsl::Value) const {}
  virtual std::vector<dsl::Value> load(uint32_t, dsl::Value, dsl::Value, dsl::Value) const {
    return {};
  }
  virtual void put(uint32_t, const std::vector<dsl::Value>&, dsl::Value) const {}

  struct Place {
    dsl::Value row, column, inside;  // within the tile; whether this lane has a chunk in this turn
  };
  Place place(uint32_t turn) const;

  // Rows are padded by 16 bytes to avoid bank conflicts among eight rows.
  static uint32_t row_elements(uint32_t inner) { return inner + 8; }
  uint32_t elements() const { return outer_ * row_elements(inner_); }

 protected:
  void store(uint32_t turn, const std::vector<dsl::Value>& values, dsl::Value slot) const;

  dsl::Array tile_;
  uint32_t outer_, inner_, chunk_, lanes_;
};

// The stored row of this lane's chunk in a turn, for routed rows; empty: the row follows from the
// tile's place.
using RowMap = std::function<dsl::Value(uint32_t turn)>;

// Copies the tile's type unchanged, 16 bytes at a time.
std::unique_ptr<TileSource> copied_source(const dsl::Array& tile, uint32_t outer, uint32_t inner,
                                          uint32_t lanes, const dsl::In& x,
                                          const StoredMatrix& matrix, const RowMap& rows);
// Converts any plain type; aligned: rows are multiples of 8 elements.
std::unique_ptr<TileSource> converted_source(const dsl::Array& tile, uint32_t outer, uint32_t inner,
                                             uint32_t lanes, const dsl::In& x,
                                             const StoredMatrix& matrix, const RowMap& rows,
                                             bool aligned);
// Decodes block types; adds `first_row` of the weights to every row.
std::unique_ptr<TileSource> decoded_source(const dsl::Array& tile, uint32_t outer, uint32_t inner,
                                           uint32_t lanes, ElementType type,
                                           const WeightReader& reader, const StoredMatrix& matrix,
                                           dsl::Value first_row);

}  // namespace prism::ops
