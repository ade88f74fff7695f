// Tiled matrix products in f32: either operand transposed, batched, any shape.
#include <fmt/format.h>

#include "ops/products/product_kernels.h"
#include "ops/products/product_params.h"
#include "ops/tail.h"
#include "prism/kernel.h"

namespace prism::ops {

using namespace dsl;

namespace {

// A group computes 128 x 128 of c, a lane 8 x 8 of that, in steps of 8 along k. Two tiles of each
// operand are 16 KiB of shared memory, the least any device has; the next step's elements travel
// through registers meanwhile.
constexpr uint32_t kTile = 128, kStep = 8, kLanes = 256;

Value widened(Value x) { return x.element() == f32 ? x : cast(f32, x); }

// One operand as tiles of [step][place], place being a row of a or a column of b.
struct Operand {
  In x;
  Array tile;
  bool along_k;              // stored rows run along k
  Value places, k, stride;   // limits; elements from a stored row to the next
  Value start, first_place;  // of the matrix; of this group
  Value whole;               // four elements side by side can be loaded at once

  Value lane_place() const { return along_k ? local_id() / 2u : local_id() % 32u * 4u; }
  Value lane_step() const { return along_k ? local_id() % 2u * 4u : local_id() / 32u; }

  std::vector<Value> fetch(Value step) const {
    const Value place = first_place + lane_place(), at = step + lane_step();
    const Value outer = along_k ? place : at, inner = along_k ? at : place;
    const Value outer_limit = along_k ? places : k, inner_limit = along_k ? k : places;
    const Value index = start + outer * stride + inner;
    std::vector<Var> parts;
    for (int i = 0; i < 4; ++i) parts.emplace_back(f32, 0.0f, "part");
    if_(
        whole,
        [&] {
          const Value four = x.load_if(outer < outer_limit && inner < inner_limit, index, 4);
          for (uint32_t i = 0; i < 4; ++i) parts[i] = widened(four[i]);
        },
        [&] {
          for (uint32_t i = 0; i < 4; ++i)
            parts[i] =
                widened(x.load_if(outer < outer_limit && inner + i < inner_limit, index + i));
        });
    return {parts[0], parts[1], parts[2], parts[3]};
  }
  void put(const std::vector<Value>& four, Value half) const {
    const Value at = half + lane_step() * kTile + lane_place();
    if (!along_k) {
      tile.store(at, vec(four[0], four[1], four[2], four[3]));
      return;
    }
    for (uint32_t i = 0; i < 4; ++i) tile[at + i * kTile] = four[i];
  }
};

}  // namespace

ir::Kernel f32_product(const F32Product& p) {
  const std::string name =
      fmt::format("product_{}{}_{}{}_in_f32{}", dtype_name(p.a), p.a_transposed ? "t" : "",
                  dtype_name(p.b), p.b_transposed ? "t" : "", p.tail ? "_tail" : "");
  return kernel(name, kLanes, [&] {
    const In a = in("a", p.a), b = in("b", p.b);
    TailCode tail(p.tail);
    const Array c = out("c", p.c);
    const ProductParams shape;
    tail.declare_params();
    const auto fours = [](Value x, Value y, Value z) { return (x | y | z) % 4u == 0u; };
    const Value first_row = group_id(1) * kTile, first_column = group_id(0) * kTile;
    const Value z = group_id(2);
    const Operand left{a,
                       shared(f32, 2 * kStep * kTile, "a_tile"),
                       !p.a_transposed,
                       shape.m,
                       shape.k,
                       shape.a_stride,
                       z / shape.a_share * shape.a_batch,
                       first_row,
                       fours(shape.a_stride, shape.a_batch, p.a_transposed ? shape.m : shape.k)};
    const Operand right{b,
                        shared(f32, 2 * kStep * kTile, "b_tile"),
                        p.b_transposed,
                        shape.n,
                        shape.k,
                        shape.b_stride,
                        z / shape.b_share * shape.b_batch,
                        first_column,
                        fours(shape.b_stride, shape.b_batch, p.b_transposed ? shape.k : shape.n)};

    std::vector<Var> sums;
    for (uint32_t i = 0; i < 64; ++i) sums.emplace_back(f32, 0.0f, "sum");
    const Value across = local_id() % 16u, down = local_id() / 16u;
    left.put(left.fetch(constant(u32, 0)), constant(u32, 0));
    right.put(right.fetch(constant(u32, 0)), constant(u32, 0));
    barrier();
    Var half(u32, 0u, "half");
    for_(0u, shape.k, kStep, [&](Value step) {
      const auto next_left = left.fetch(step + kStep), next_right = right.fetch(step + kStep);
      const Value now = half;
      unrolled_for(kStep, [&](Value s) {
        const Value at = now + s * kTile;
        std::vector<Value> rows, columns;
        for (uint32_t part = 0; part < 2; ++part) {
          const Value four_rows = left.tile.load(at + down * 4u + part * 64, 4);
          const Value four_columns = right.tile.load(at + across * 4u + part * 64, 4);
          for (uint32_t i = 0; i < 4; ++i)
            rows.push_back(four_rows[i]), columns.push_back(four_columns[i]);
        }
        for (uint32_t i = 0; i < 8; ++i)
          for (uint32_t j = 0; j < 8; ++j)
            sums[i * 8 + j] = fma(rows[i], columns[j], sums[i * 8 + j]);
      });
      const Value other = (kStep * kTile) - now;
      left.put(next_left, other);
      right.put(next_right, other);
      half = other;
      barrier();
    });

    const Value c_whole = fours(shape.c_stride, shape.c_batch, shape.n);
    for (uint32_t i = 0; i < 8; ++i) {
      const Value row = first_row + down * 4u + (i / 4 * 64 + i % 4);
      for (uint32_t part = 0; part < 2; ++part) {
        const Value column = first_column + across * 4u + part * 64;
        const Value place = z * shape.c_batch + row * shape.c_stride + column;
        const uint32_t s = i * 8 + part * 4;
        const Value of_all = z * shape.m + row;
        if_(row < shape.m && column < shape.n, [&] {
          if_(
              c_whole,
              [&] {
                const auto results = tail.apply_four(
                    {sums[s], sums[s + 1], sums[s + 2], sums[s + 3]}, of_all, column, place);
                c.store(place, vec(results[0], results[1], results[2], results[3]));
              },
              [&] {
                for (uint32_t j = 0; j < 4; ++j)
                  if_(column + j < shape.n, [&] {
                    c[place + j] = tail.apply(sums[s + j], of_all, column + j, place + j);
                  });
              });
        });
      }
    }
  });
}

ProductLaunch square_tiles_launch(const ProductShape& s, uint32_t tile) {
  ProductLaunch launch;
  launch.groups = {(s.n + tile - 1) / tile, (s.m + tile - 1) / tile, s.batch};
  launch.params = {s.m,       s.n,       s.k,       s.a_stride, s.b_stride, s.c_stride,
                   s.a_batch, s.b_batch, s.c_batch, s.a_share,  s.b_share};
  return launch;
}

ProductLaunch f32_product_launch(const ProductShape& s) { return square_tiles_launch(s, kTile); }

uint32_t f32_product_parts(const ProductShape& s, uint32_t compute_units) {
  constexpr uint32_t kLeastOfPart = 256, kMostParts = 64;
  const uint32_t tiles = ((s.n + kTile - 1) / kTile) * ((s.m + kTile - 1) / kTile);
  uint32_t parts = 1;
  // Two groups for each unit; all parts are equally long and begin at whole loads.
  while (s.batch == 1 && parts < kMostParts && tiles * parts < 2 * compute_units &&
         s.k % (2 * parts * kStep) == 0 && s.k / (2 * parts) >= kLeastOfPart)
    parts *= 2;
  return parts;
}

ir::Kernel sum_of_parts(DType type) {
  return kernel(fmt::format("sum_of_parts_{}", dtype_name(type)), kPartsGroup, [&] {
    const In x = in("x", f32);
    const Array y = out("y", type);
    const Value parts = param("parts", u32), elements = param("elements", u32);
    const Value i = global_id();
    if_(i < elements, [&] {
      Var sum(f32, 0.0f, "sum");
      for_(0u, parts, 1u, [&](Value part) { sum = sum + x[part * elements + i]; });
      y[i] = sum;
    });
  });
}

}  // namespace prism::ops
