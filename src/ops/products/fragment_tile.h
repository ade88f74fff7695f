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

// Gets four sums side by side, with their row and column within the tile.
using TileWriter =
    std::function<void(dsl::Value row, dsl::Value column, const std::vector<dsl::Value>& four)>;

// Multiplies the tile that begins at a row of a and a column of b, over k elements.
void multiply_tile(const FragmentProduct& product, const FragmentTiles& tiles,
                   std::unique_ptr<TileSource> a, std::unique_ptr<TileSource> b, dsl::Value row,
                   dsl::Value column, dsl::Value k, const TileWriter& write);

// Gets one sum, in the register that holds it, and the value of its column.
using SumVisitor =
    std::function<void(dsl::Value row, dsl::Value column, dsl::Value sum, dsl::Value of_column)>;
// Visits all sums of the tile; called by the whole group. before: called before each fragment, of
// whose sums a lane has at most kSumsOfLane.
using TileVisit = std::function<void(const SumVisitor& visit, const std::function<void()>& before)>;
inline constexpr uint32_t kSumsOfLane = 16 * 16 / 32;

// For devices that know the layout of fragments. `finish` visits the sums, as often as it likes.
// columns: f32, one for each column of b up to the end of the last tile; null: visits get the sum
// in its place.
void visit_tile(const FragmentProduct& product, const FragmentTiles& tiles,
                std::unique_ptr<TileSource> a, std::unique_ptr<TileSource> b, dsl::Value row,
                dsl::Value column, dsl::Value k, const dsl::In* columns,
                const std::function<void(const TileVisit&)>& finish);
// The same for tiles one below the other, up to `row_end`. While `finish` visits the tile at its
// row, the operands of the next are on their way. Both operands are copied and run ahead.
void visit_tiles(const FragmentProduct& product, const FragmentTiles& tiles,
                 std::unique_ptr<TileSource> a, std::unique_ptr<TileSource> b, dsl::Value row,
                 dsl::Value row_end, dsl::Value column, dsl::Value k, const dsl::In* columns,
                 const std::function<void(dsl::Value row, const TileVisit&)>& finish);

}  // namespace prism::ops
