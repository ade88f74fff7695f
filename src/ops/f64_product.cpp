// Products in f64, in tiles: plain operands of any float type, either side transposed, batched, any
// edge.
#include <fmt/format.h>

#include "dsl/dsl.h"
#include "ops/product_kernels.h"

namespace prism::ops {

using namespace dsl;

namespace {

// A group computes 64 x 64 of c, a lane 4 x 4 of that (every sixteenth row and column, so that
// lanes that are neighbours read neighbours), in steps of 16 along k: two tiles are 16 KiB.
constexpr uint32_t kTile = 64, kStep = 16, kLanes = 256, kEach = 4;

// One operand as a tile of [step][place], place being a row of a or a column of b.
void fetch(const In& x, const Array& tile, bool along_k, Value places, Value k, Value stride,
           Value start, Value first_place, Value step) {
  for (uint32_t turn = 0; turn < kTile * kStep; turn += kLanes) {
    const Value i = local_id() + turn;
    const Value place = along_k ? i / kStep : i % kTile, at = along_k ? i % kStep : i / kTile;
    const Value outer = first_place + place, inner = step + at;
    const Value index = start + (along_k ? outer * stride + inner : inner * stride + outer);
    const Value element = x.load_if(outer < places && inner < k, index);
    tile[at * kTile + place] = element.element() == f64 ? element : cast(f64, element);
  }
}

}  // namespace

std::string product_key(const F64Product& p) {
  return fmt::format("product_{}{}_{}{}_f64", dtype_name(p.a), p.a_transposed ? "t" : "",
                     dtype_name(p.b), p.b_transposed ? "t" : "");
}

ir::Kernel f64_product(const F64Product& p) {
  return kernel(product_key(p), kLanes, [&] {
    const In a = in("a", p.a), b = in("b", p.b);
    const Array c = out("c", f64);
    const Value m = param("m", u32), n = param("n", u32), k = param("k", u32);
    const Value a_stride = param("a_stride", u32), b_stride = param("b_stride", u32),
                c_stride = param("c_stride", u32);
    const Value a_batch = param("a_batch", u32), b_batch = param("b_batch", u32),
                c_batch = param("c_batch", u32);
    const Value a_share = param("a_share", u32), b_share = param("b_share", u32);
    const Array a_tile = shared(f64, kStep * kTile, "a_tile"),
                b_tile = shared(f64, kStep * kTile, "b_tile");
    const Value first_row = group_id(1) * kTile, first_column = group_id(0) * kTile;
    const Value z = group_id(2);
    const Value across = local_id() % 16u, down = local_id() / 16u;
    std::vector<Var> sums;
    for (uint32_t i = 0; i < kEach * kEach; ++i) sums.emplace_back(f64, 0.0, "sum");
    for_(0u, k, kStep, [&](Value step) {
      fetch(a, a_tile, !p.a_transposed, m, k, a_stride, z / a_share * a_batch, first_row, step);
      fetch(b, b_tile, p.b_transposed, n, k, b_stride, z / b_share * b_batch, first_column, step);
      barrier();
      for_(0u, kStep, 1u, [&](Value s) {
        std::vector<Value> rows, columns;
        for (uint32_t i = 0; i < kEach; ++i) {
          rows.push_back(a_tile.load(s * kTile + down + i * 16));
          columns.push_back(b_tile.load(s * kTile + across + i * 16));
        }
        for (uint32_t i = 0; i < kEach; ++i)
          for (uint32_t j = 0; j < kEach; ++j) sums[i * kEach + j] += rows[i] * columns[j];
      });
      barrier();
    });
    for (uint32_t i = 0; i < kEach; ++i) {
      for (uint32_t j = 0; j < kEach; ++j) {
        const Value row = first_row + down + i * 16, column = first_column + across + j * 16;
        if_(row < m && column < n,
            [&] { c[z * c_batch + row * c_stride + column] = sums[i * kEach + j]; });
      }
    }
  });
}

ProductLaunch f64_product_launch(const ProductShape& s) { return square_tiles_launch(s, kTile); }

}  // namespace prism::ops
