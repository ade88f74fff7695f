// Matrix products of many rows with fragments: any shape, either operand transposed, weights
// decoded on the way into shared memory.
#include <algorithm>

#include <fmt/format.h>

#include "ops/products/fragment_tile.h"
#include "ops/products/product_kernels.h"
#include "ops/products/product_params.h"
#include "ops/products/tile_source.h"
#include "ops/tail.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

void check(const FragmentProduct& p) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("fragment_product of {} and {}: {}",
                                                         dtype_name(p.a), p.b.name(), what));
  };
  if (p.operand != f16 && p.operand != bf16)
    fail(fmt::format("operands of {}; f16 or bf16", dtype_name(p.operand)));
  if (p.stages < 2) fail(fmt::format("{} stages; at least two", p.stages));
  if (p.tile_m % (p.warps_m * 16) || p.tile_n % (p.warps_n * 16) || p.tile_k % 32)
    fail(fmt::format("a tile of {} x {} x {} for {} x {} subgroups; 16 x 16 x 32 at least for each",
                     p.tile_m, p.tile_n, p.tile_k, p.warps_m, p.warps_n));
  if (p.b.is_block() && !p.b_transposed) fail("block weights lie by rows of k: b_transposed");
  if (p.experts && (p.a_transposed || !p.b_transposed))
    fail("experts take rows of a and of b as they lie: b_transposed, a not");
}

std::string name_of(const FragmentProduct& p) {
  std::string name =
      fmt::format("product_{}{}_{}{}_{}_{}", dtype_name(p.a), p.a_transposed ? "t" : "", p.b.name(),
                  p.b_transposed ? "t" : "", dtype_name(p.c), dtype_name(p.operand));
  if (!p.aligned) name += "_unaligned";
  if (p.tail) name += "_tail";
  if (p.experts) name += "_experts";
  if (p.subgroup != 32) name += fmt::format("_of{}", p.subgroup);
  return name + fmt::format("_{}x{}x{}_{}x{}_{}{}", p.tile_m, p.tile_n, p.tile_k, p.warps_m,
                            p.warps_n, p.stages, p.run_ahead ? "_ahead" : "");
}

struct Buffers {
  In a, b;
  std::optional<In> order, tiles;
};

// Row of c (or of order) and column of this group's tile, and how many rows it may have.
struct TilePlace {
  Value row, column, row_limit, first, expert;
};

TilePlace tile_place(const FragmentProduct& p, const ProductParams& s, const Buffers& buffers) {
  if (p.experts) {
    const Value entry = group_id(1) * 4u + 4u;
    return {constant(u32, 0), group_id(0) * p.tile_n, buffers.tiles->load(entry + 2u),
            buffers.tiles->load(entry + 1u), buffers.tiles->load(entry)};
  }
  // Groups take tiles in blocks of eight rows of tiles, so that those running together share b in
  // the cache.
  constexpr uint32_t kBlock = 8;
  const Value tiles_m = (s.m + (p.tile_m - 1)) / p.tile_m,
              tiles_n = (s.n + (p.tile_n - 1)) / p.tile_n;
  const Value block = group_id() / (tiles_n * kBlock), within = group_id() % (tiles_n * kBlock);
  const Value height = min(tiles_m - block * kBlock, kBlock);
  return {(block * kBlock + within % height) * p.tile_m, within / height * p.tile_n, s.m,
          constant(u32, 0), constant(u32, 0)};
}

void write_body(const FragmentProduct& p, const ProductParams& s, const Buffers& buffers,
                const WeightParams& layout, const TailCode& tail, const Array& c) {
  const uint32_t lanes = p.warps_m * p.warps_n * p.subgroup;
  const TilePlace at = tile_place(p, s, buffers);
  const FragmentTiles tiles(p);
  const Value z = group_id(2);

  const StoredMatrix a_matrix{p.a_transposed ? s.k : at.row_limit,
                              p.a_transposed ? at.row_limit : s.k, s.a_stride,
                              p.experts ? constant(u32, 0) : z / s.a_share * s.a_batch};
  const Value b_first = (p.experts ? at.expert : z / s.b_share) * s.b_batch;
  const StoredMatrix b_matrix{p.b_transposed ? s.n : s.k, p.b_transposed ? s.k : s.n, s.b_stride,
                              b_first};
  // Routed rows are looked up once, before the loop.
  std::vector<Value> routed;
  RowMap row_map;
  const auto slot_of = [&](Value row) {
    return buffers.order->load_if(row < at.row_limit, at.first + row);
  };
  std::unique_ptr<TileSource> a_source;
  const bool copied = p.aligned && p.a == p.operand;
  if (p.experts) row_map = [&](uint32_t turn) { return routed[turn]; };
  if (copied)
    a_source =
        copied_source(tiles.a, tiles.a_outer, tiles.a_inner, lanes, buffers.a, a_matrix, row_map);
  else
    a_source = converted_source(tiles.a, tiles.a_outer, tiles.a_inner, lanes, buffers.a, a_matrix,
                                row_map, p.aligned);
  for (uint32_t t = 0; p.experts && t < a_source->turns(); ++t)
    routed.push_back(slot_of(a_source->place(t).row) % kNoExpert / s.a_share);

  std::unique_ptr<TileSource> b_source;
  if (p.b.is_block())
    b_source = decoded_source(tiles.b, tiles.b_outer, tiles.b_inner, lanes, p.b,
                              WeightReader(p.b, buffers.b, layout, s.k), b_matrix, b_first);
  else if (p.aligned && p.b.plain() == p.operand)
    b_source = copied_source(tiles.b, tiles.b_outer, tiles.b_inner, lanes, buffers.b, b_matrix, {});
  else
    b_source = converted_source(tiles.b, tiles.b_outer, tiles.b_inner, lanes, buffers.b, b_matrix,
                                {}, p.aligned);

  const Value c_start = p.experts ? constant(u32, 0) : z * s.c_batch;
  const auto write = [&](Value in_row, Value in_column, const std::vector<Value>& four) {
    const Value row = at.row + in_row, column = at.column + in_column;
    const Value slot = p.experts ? slot_of(row) : row;
    const Value place = c_start + (p.experts ? slot % kNoExpert : slot) * s.c_stride + column;
    const Value of_all = p.experts ? slot % kNoExpert : z * s.m + row;
    const auto known = [&](Value value) {
      if (!p.experts) return value;
      return select(slot < kNoExpert, value, constant_bits(f32, 0x7fc00000u));
    };
    if (p.aligned) {
      if_(row < at.row_limit && column < s.n, [&] {
        const auto results = tail.apply_four(four, of_all, column, place);
        c.store(place,
                vec(known(results[0]), known(results[1]), known(results[2]), known(results[3])));
      });
      return;
    }
    // One condition and not two nested: PoCL 3.1 stores the latter where only one of them holds.
    for (uint32_t i = 0; i < 4; ++i)
      if_(row < at.row_limit && column + i < s.n,
          [&] { c[place + i] = known(tail.apply(four[i], of_all, column + i, place + i)); });
  };
  multiply_tile(p, tiles, std::move(a_source), std::move(b_source), at.row, at.column, s.k, write);
}

}  // namespace

ir::Kernel fragment_product(const FragmentProduct& p) {
  check(p);
  return kernel(name_of(p), p.warps_m * p.warps_n * p.subgroup, [&] {
    require_subgroup_size(p.subgroup);
    Buffers buffers{in("a", p.a), in("b", p.b.is_block() ? u32 : p.b.plain()), {}, {}};
    if (p.experts) {
      buffers.order = in("order", u32);
      buffers.tiles = in("tiles", u32);
    }
    TailCode tail(p.tail);
    const Array c = out("c", p.c);
    const ProductParams params;
    const WeightParams layout(p.b);
    tail.declare_params();
    launch_next();
    wait_previous();
    const auto body = [&] { write_body(p, params, buffers, layout, tail, c); };
    if (p.experts)
      if_(group_id(1) < buffers.tiles->load(0u), body);
    else
      body();
  });
}

ProductShape dense_shape(const FragmentProduct& p, uint32_t m, uint32_t n, uint32_t k) {
  ProductShape s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.a_stride = p.a_transposed ? m : k;
  s.b_stride = p.b_transposed ? k : n;
  s.c_stride = n;
  return s;
}

ProductLaunch fragment_product_launch(const FragmentProduct& p, const ProductShape& s) {
  const auto tiles = [](uint32_t count, uint32_t each) { return (count + each - 1) / each; };
  ProductLaunch launch;
  launch.groups = {tiles(s.m, p.tile_m) * tiles(s.n, p.tile_n), 1, s.batch};
  launch.params = {s.m,       s.n,       s.k,       s.a_stride, s.b_stride, s.c_stride,
                   s.a_batch, s.b_batch, s.c_batch, s.a_share,  s.b_share};
  const auto layout = WeightParams::for_launch(p.b, s.k);
  launch.params.insert(launch.params.end(), layout.begin(), layout.end());
  return launch;
}

ProductLaunch expert_product_launch(const FragmentProduct& p, uint32_t slots, uint32_t n,
                                    uint32_t k, uint32_t experts, uint32_t x_share) {
  ProductShape shape = dense_shape(p, slots, n, k);
  shape.a_share = x_share;
  shape.b_batch = p.b.is_block() ? n : n * k;
  ProductLaunch launch = fragment_product_launch(p, shape);
  launch.groups = {(n + p.tile_n - 1) / p.tile_n, expert_tiles_at_most(slots, experts, p.tile_m),
                   1};
  return launch;
}

uint32_t fragment_subgroup(const ir::Capabilities& device) {
  return device.fragments.empty() || !device.fragment_layout ? 32 : device.subgroup_size;
}

bool has_fragments(const ir::Capabilities& device, DType operand) {
  return std::ranges::any_of(device.fragments, [&](const ir::FragmentShape& f) {
    return f.operand == operand && f.m == 16 && f.n == 16 && f.k == 16;
  });
}

FragmentProduct fragment_product_for(FragmentProduct p, const ProductShape& s,
                                     const ir::Capabilities& device, uint32_t compute_units) {
  p.subgroup = fragment_subgroup(device);
  const auto whole = [](uint32_t x) { return x % 8 == 0; };
  p.aligned = p.aligned && whole(s.a_stride) && whole(s.b_stride) && whole(s.c_stride) &&
              whole(s.a_batch) && (whole(s.b_batch) || p.b.is_block()) && whole(s.c_batch) &&
              whole(p.a_transposed ? s.m : s.k) && whole(p.b_transposed ? s.k : s.n) && whole(s.n);
  // Groups that run at once finish together: how full the rounds of all compute units are.
  const auto fullness = [&](uint32_t m, uint32_t n) {
    const uint64_t groups = uint64_t((s.m + m - 1) / m) * ((s.n + n - 1) / n) * s.batch;
    const uint64_t units = std::max(1u, compute_units);
    return static_cast<double>(groups) /
           static_cast<double>(std::max<uint64_t>(1, (groups + units - 1) / units) * units);
  };
  const bool loads = p.b.is_block() || !p.aligned || p.a != p.operand || p.b.plain() != p.operand;
  if (!has_fragments(device, p.operand)) {
    // What is emulated needs shared memory of its own, and narrow elements may take a word each.
    if (device.shared_bytes >= (30u << 10))
      p.cut(32, 32, 32, 1, 2, 2, false);
    else
      p.cut(16, 16, 32, 1, 1, 2, false);
  } else if (device.shared_bytes < (160u << 10) || device.max_group_size < 256) {
    p.cut(64, 64, 32, 2, 2, 2, false);
  } else if (s.m <= 32) {
    p.cut(32, 64, 128, 2, 4, 2, false);  // as many groups as can be: the weights are read once
  } else {
    // By what full rounds reach on an H200, in TFLOP/s.
    const double large = loads ? 0 : 424 * fullness(128, 256), middle = 331 * fullness(128, 128),
                 small = 200 * fullness(64, 64);
    if (large >= middle && large >= small)
      p.cut(128, 256, 64, 2, 4, 3, true);
    else if (middle >= small)
      p.cut(128, 128, 64, 2, 4, loads ? 2 : 3, true);
    else
      p.cut(64, 64, 64, 2, 2, 3, true);
  }
  return p;
}

}  // namespace prism::ops
