// Tiled matrix products in f64: operands of any float type, either transposed, batched, any shape;
// or rows routed to experts.
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "ops/products/product_kernels.h"
#include "ops/products/product_params.h"
#include "prism/kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

// A group computes 64 x 64 of c, a lane 4 x 4 of that (every sixteenth row and column, so that
// lanes that are neighbours read neighbours), in steps of 16 along k: two tiles are 16 KiB.
constexpr uint32_t kTile = kF64Tile, kStep = 16, kLanes = 256, kEach = 4;

// One operand as a tile of [step][place], place being a row of a or a column of b, of which the
// stored matrix has row_of(place).
void fetch(const In& x, const Array& tile, bool along_k, Value places, Value k, Value stride,
           Value start, Value first_place, Value step, const std::function<Value(Value)>& row_of) {
  for (uint32_t turn = 0; turn < kTile * kStep; turn += kLanes) {
    const Value i = local_id() + turn;
    const Value place = along_k ? i / kStep : i % kTile, at = along_k ? i % kStep : i / kTile;
    const Value outer = first_place + place, inner = step + at, row = row_of(outer);
    const Value index = start + (along_k ? row * stride + inner : inner * stride + row);
    const Value element = x.load_if(outer < places && inner < k, index);
    tile[at * kTile + place] = element.element() == f64 ? element : cast(f64, element);
  }
}

// Where a group's tile lies in its operands: matrices that start there, rows up to a limit, and for
// each of them the one of a and of c.
struct TilePlace {
  Value first_row, row_limit, a_start, b_start, c_start;
  std::function<Value(Value)> a_row, c_row;  // c_row: kNoExpert added where there is no result
};

TilePlace tile_of_batch(const ProductParams& s) {
  const Value z = group_id(2);
  const auto same = [](Value row) { return row; };
  return {group_id(1) * kTile,
          s.m,
          z / s.a_share * s.a_batch,
          z / s.b_share * s.b_batch,
          z * s.c_batch,
          same,
          same};
}

TilePlace tile_of_expert(const ProductParams& s, const In& order, const In& tiles) {
  const Value entry = group_id(1) * 4u + 4u, zero = constant(u32, 0);
  const Value first = tiles.load(entry + 1u), limit = tiles.load(entry + 2u);
  const auto slot = [=](Value row) { return order.load_if(row < limit, first + row); };
  const auto of_x = [=](Value row) { return slot(row) % kNoExpert / s.a_share; };
  return {zero, limit, zero, tiles.load(entry) * s.b_batch, zero, of_x, slot};
}

void write_tile(const F64Product& p, const ProductParams& s, const In& a, const In& b,
                const Array& c, const TilePlace& at) {
  const Array a_tile = shared(f64, kStep * kTile, "a_tile"),
              b_tile = shared(f64, kStep * kTile, "b_tile");
  const Value first_column = group_id(0) * kTile;
  const Value across = local_id() % 16u, down = local_id() / 16u;
  std::vector<Var> sums;
  for (uint32_t i = 0; i < kEach * kEach; ++i) sums.emplace_back(f64, 0.0, "sum");
  for_(0u, s.k, kStep, [&](Value step) {
    fetch(a, a_tile, !p.a_transposed, at.row_limit, s.k, s.a_stride, at.a_start, at.first_row, step,
          at.a_row);
    fetch(b, b_tile, p.b_transposed, s.n, s.k, s.b_stride, at.b_start, first_column, step,
          [](Value column) { return column; });
    barrier();
    for_(0u, kStep, 1u, [&](Value inner) {
      std::vector<Value> rows, columns;
      for (uint32_t i = 0; i < kEach; ++i) {
        rows.push_back(a_tile.load(inner * kTile + down + i * 16));
        columns.push_back(b_tile.load(inner * kTile + across + i * 16));
      }
      for (uint32_t i = 0; i < kEach; ++i)
        for (uint32_t j = 0; j < kEach; ++j) sums[i * kEach + j] += rows[i] * columns[j];
    });
    barrier();
  });
  for (uint32_t i = 0; i < kEach; ++i) {
    const Value row = at.first_row + down + i * 16, to = at.c_row(row);
    for (uint32_t j = 0; j < kEach; ++j) {
      const Value column = first_column + across + j * 16;
      Value sum = sums[i * kEach + j];
      if (p.experts) sum = select(to < kNoExpert, sum, constant_bits(f64, 0x7ff8ull << 48));
      const Value c_row = p.experts ? to % kNoExpert : to;
      if_(row < at.row_limit && column < s.n,
          [&] { c[at.c_start + c_row * s.c_stride + column] = sum; });
    }
  }
}

}  // namespace

std::string product_key(const F64Product& p) {
  return fmt::format("product_{}{}_{}{}_f64{}", dtype_name(p.a), p.a_transposed ? "t" : "",
                     dtype_name(p.b), p.b_transposed ? "t" : "", p.experts ? "_experts" : "");
}

ir::Kernel f64_product(const F64Product& p) {
  return kernel(product_key(p), kLanes, [&] {
    const In a = in("a", p.a), b = in("b", p.b);
    std::optional<In> order, tiles;
    if (p.experts) order = in("order", u32), tiles = in("tiles", u32);
    const Array c = out("c", f64);
    const ProductParams s;
    if (p.experts)
      if_(group_id(1) < tiles->load(0u),
          [&] { write_tile(p, s, a, b, c, tile_of_expert(s, *order, *tiles)); });
    else
      write_tile(p, s, a, b, c, tile_of_batch(s));
  });
}

ProductLaunch f64_product_launch(const ProductShape& s) { return square_tiles_launch(s, kTile); }

ProductLaunch f64_expert_launch(uint32_t slots, uint32_t n, uint32_t k, uint32_t experts,
                                uint32_t x_share) {
  ProductShape shape{slots, n, k, k, k, n};
  shape.a_share = x_share;
  shape.b_batch = n * k;
  ProductLaunch launch = f64_product_launch(shape);
  launch.groups[1] = expert_tiles_at_most(slots, experts, kTile);
  return launch;
}

}  // namespace prism::ops
