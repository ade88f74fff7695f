// One tile of a product with fragments, for kernels that do with the sums what they like.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ops/products/product_kernels.h"
#include "ops/products/tile_source.h"
#include "prism/kernel.h"

namespace prism::ops {

// The operands' tiles in shared memory, with all stages.
struct FragmentTiles {
  explicit FragmentTiles(const FragmentProduct& product);
  uint32_t a_outer, a_inner, b_outer, b_inner;  // stored rows of a stage, and their elements
  dsl::Array a, b;
};

// Gets four sums side by side, or one, with their row and column within the tile.
using TileWriter =
    std::function<void(dsl::Value row, dsl::Value column, const std::vector<dsl::Value>& sums)>;

// Multiplies the tile that begins at a row of a and a column of b, over k elements. one_by_one:
// `write` gets single sums, in the registers that hold them; without a device that knows the layout
// of fragments these are not matrix instructions any more.
void multiply_tile(const FragmentProduct& product, const FragmentTiles& tiles,
                   std::unique_ptr<TileSource> a, std::unique_ptr<TileSource> b, dsl::Value row,
                   dsl::Value column, dsl::Value k, const TileWriter& write,
                   bool one_by_one = false);

}  // namespace prism::ops
