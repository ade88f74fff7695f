// Products of some rows with block-quantised weights: packed tiles in shared memory, fragments made
// from them as they are multiplied.
//
// Weights are the a operand and x is the b operand, so that a subgroup makes each fragment of
// weights once and multiplies it with all rows of x. The subgroups of a group share the weight rows
// of a tile and its columns; partial sums over columns are added at the end.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "ops/products/packed_tile.h"
#include "ops/products/product_kernels.h"
#include "ops/products/tile_source.h"
#include "ops/tail.h"
#include "prism/error.h"

namespace prism::ops {

using namespace dsl;

namespace {

void check(const PackedProduct& p) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("packed_product of {} weights: {}", p.weight.name(), what));
  };
  if (!p.weight.is_block()) fail("they are not packed");
  if (p.stages < 3) fail(fmt::format("{} stages; at least three", p.stages));
  if (p.tile_k < 128 || !std::has_single_bit(p.tile_k))
    fail(fmt::format("a tile of {} columns; a power of two from 128 on", p.tile_k));
  if (p.tile_rows % 16 || p.tile_n % (p.warps_n * 16) || p.tile_k % (p.warps_k * 32))
    fail(fmt::format("a tile of {} x {} x {} for {} x {} subgroups; 16 x 16 x 32 at least for each",
                     p.tile_rows, p.tile_n, p.tile_k, p.warps_n, p.warps_k));
}

std::string name_of(const PackedProduct& p) {
  std::string name = fmt::format("packed_product_{}_{}", p.weight.name(), dtype_name(p.y));
  if (!p.aligned) name += "_unaligned";
  if (p.tail) name += "_tail";
  if (p.subgroup != 32) name += fmt::format("_of{}", p.subgroup);
  return name + fmt::format("_{}x{}x{}_{}x{}_{}", p.tile_rows, p.tile_n, p.tile_k, p.warps_n,
                            p.warps_k, p.stages);
}

// The accumulators of one subgroup: 16 weight rows x 16 rows of x each.
class Sums {
 public:
  explicit Sums(const PackedProduct& p)
      : p_(p),
        own_n_(p.tile_n / p.warps_n / 16),
        own_rows_(p.tile_rows / 16),
        slice_(p.tile_k / p.warps_k),
        warp_n_(subgroup_id() % p.warps_n),
        warp_k_(subgroup_id() / p.warps_n) {
    for (uint32_t i = 0; i < chains() * own_n_ * own_rows_; ++i) {
      sums_.push_back(accumulator(f32));
      sums_.back().fill(0);
    }
    for (uint32_t i = 0; i < 2 * own_n_; ++i) weights_.push_back(fragment_a(f16));
    for (uint32_t j = 0; j < own_rows_; ++j) rows_.push_back(fragment_b(f16));
  }

  // Multiplies this subgroup's columns of the tile.
  void multiply(const PackedTile& tile, const Array& x_tile, Value slot, Value set) const {
    const uint32_t x_row = TileSource::row_elements(p_.tile_k);
    const Value first = warp_k_ * slice_;
    for (uint32_t unit = 0; unit < slice_; unit += 32) {
      // Both fragments of 32 columns first: they share words, which loads of x would separate.
      for (uint32_t half = 0; half < 2; ++half)
        for (uint32_t i = 0; i < own_n_; ++i) {
          const PackedTile::Place place{slot, set, (warp_n_ * own_n_ + i) * 16u, first,
                                        unit + half * 16};
          weights_[half * own_n_ + i].make(
              [&](Value row, Value k) { return tile.pair(place, row, k); });
        }
      for (uint32_t half = 0; half < 2; ++half) {
        for (uint32_t j = 0; j < own_rows_; ++j)
          rows_[j].load(x_tile,
                        slot * (p_.tile_rows * x_row) + first + (j * 16 * x_row + unit + half * 16),
                        x_row, dsl::Layout::column_major);
        for (uint32_t i = 0; i < own_n_; ++i)
          for (uint32_t j = 0; j < own_rows_; ++j)
            sums_[(half % chains() * own_n_ + i) * own_rows_ + j].multiply(
                weights_[half * own_n_ + i], rows_[j]);
      }
    }
  }

  // write(row of x, weight row, four values side by side) for the whole tile.
  void finish(const std::function<void(Value, Value, const std::vector<Value>&)>& write) const {
    const uint32_t stride = strip_row(p_), part = p_.tile_rows * stride;
    const Array strip = shared(f32, uint64_t(p_.warps_k) * part, "strip");
    const uint32_t own = own_n_ * own_rows_;
    for (uint32_t i = 0; chains() == 2 && i < own; ++i)
      sums_[i].map({sums_[i], sums_[own + i]},
                   [](const std::vector<Value>& x, Value, Value) { return x[0] + x[1]; });
    for (uint32_t i = 0; i < own_n_; ++i)
      for (uint32_t j = 0; j < own_rows_; ++j)
        sums_[i * own_rows_ + j].store(
            strip, warp_k_ * part + j * 16 * stride + (warp_n_ * own_n_ + i) * 16u, stride,
            dsl::Layout::column_major);
    barrier();
    const uint32_t quads = p_.tile_n / 4;
    for_(local_id(), p_.tile_rows * quads, p_.lanes(), [&](Value quad) {
      const Value row = quad / quads, column = quad % quads * 4u;
      std::vector<Value> totals(4, constant(f32, 0.0));
      for (uint32_t w = 0; w < p_.warps_k; ++w) {
        const Value four = strip.load(row * stride + column + w * part, 4);
        for (uint32_t e = 0; e < 4; ++e) totals[e] = totals[e] + four[e];
      }
      write(row, column, totals);
    });
  }

  // Few accumulators are kept twice: a multiplication waits for the one before it with the same
  // sum.
  uint32_t chains() const { return own_n_ * own_rows_ <= 2 ? 2 : 1; }

  // Padded, so that columns of an accumulator are stored to different banks.
  static uint32_t strip_row(const PackedProduct& p) { return p.tile_n + 4; }

 private:
  const PackedProduct& p_;
  uint32_t own_n_, own_rows_, slice_;
  Value warp_n_, warp_k_;
  std::vector<Fragment> sums_, weights_, rows_;
};

}  // namespace

uint64_t PackedProduct::shared_bytes() const {
  return PackedTile::bytes(weight, tile_n, tile_k, stages) +
         uint64_t(2) * stages * tile_rows * TileSource::row_elements(tile_k) +
         uint64_t(4) * warps_k * tile_rows * Sums::strip_row(*this);
}

ir::Kernel packed_product(const PackedProduct& p) {
  check(p);
  return kernel(name_of(p), p.lanes(), [&] {
    require_subgroup_size(p.subgroup);
    const In w = weights("w", u32), x = in("x", f16);
    TailCode tail(p.tail);
    const Array y = out("y", p.y);
    const Value n = param("n", u32), k = param("k", u32), rows = param("rows", u32);
    const Value x_stride = param("x_stride", u32);
    const WeightParams layout(p.weight);
    tail.declare_params();

    const PackedTile tile(p.weight, p.tile_n, p.tile_k, p.stages, p.lanes());
    const uint32_t x_row = TileSource::row_elements(p.tile_k);
    const Array x_tile = shared(f16, uint64_t(p.stages) * p.tile_rows * x_row, "x_tile");
    const Value first_n = group_id(0) * p.tile_n, first_row = group_id(1) * p.tile_rows;
    // The tiles that start at a column; `whole`: they end before k, so that no column is checked.
    const auto copy_weights = [&](Value start, Value slot, bool whole) {
      tile.copy(w, layout, slot, first_n, n, start, whole ? std::optional<Value>() : k);
    };
    const auto copy_rows = [&](Value start, Value slot, bool whole) {
      const uint32_t chunks = p.tile_k / 8, total = p.tile_rows * chunks;
      for (uint32_t turn = 0; turn * p.lanes() < total; ++turn) {
        const Value place = local_id() + turn * p.lanes();
        const Value row = place / chunks, column = place % chunks * 8u;
        const auto one = [&] {
          const Value there = first_row + row < rows;
          async_copy_if(whole ? there : there && start + column < k, x_tile,
                        slot * (p.tile_rows * x_row) + row * x_row + column, x,
                        (first_row + row) * x_stride + start + column, 8);
        };
        if ((turn + 1) * p.lanes() <= total)
          one();
        else
          if_(place < total, one);
      }
    };
    // Weights do not depend on the previous launch.
    for (uint32_t s = 0; s + 1 < p.stages; ++s)
      copy_weights(constant(u32, s * p.tile_k), constant(u32, s), false);
    wait_previous();
    launch_next();
    for (uint32_t s = 0; s + 1 < p.stages; ++s) {
      copy_rows(constant(u32, s * p.tile_k), constant(u32, s), false);
      async_commit();
    }

    const Sums sums(p);
    Var slot(u32, 0u, "slot"), copy_slot(u32, p.stages - 1, "copy_slot"), set(u32, 0u, "set");
    const auto following = [&](const Var& s) { return select(s == p.stages - 1, 0u, s + 1u); };
    async_wait(p.stages - 2);
    barrier();
    tile.decode_scales(constant(u32, 0), constant(u32, 0), constant(u32, 0));
    for_((k + (p.tile_k - 1)) / p.tile_k, [&](Value step) {
      async_wait(p.stages - 3);  // the next tile, whose scales are decoded
      barrier();
      const Value ahead = (step + (p.stages - 1)) * p.tile_k, next = (step + 1u) * p.tile_k;
      const auto copy = [&](bool whole) {
        copy_weights(ahead, copy_slot, whole);
        copy_rows(ahead, copy_slot, whole);
      };
      if_(
          ahead + p.tile_k <= k, [&] { copy(true); },
          [&] { if_(ahead < k, [&] { copy(false); }); });
      async_commit();
      if_(next < k, [&] { tile.decode_scales(following(slot), 1u - set, next); });
      sums.multiply(tile, x_tile, slot, set);
      slot = following(slot);
      copy_slot = following(copy_slot);
      set = 1u - set;
    });

    sums.finish([&](Value in_row, Value in_column, const std::vector<Value>& four) {
      const Value row = first_row + in_row, column = first_n + in_column;
      const Value place = row * n + column;
      if (p.aligned) {
        if_(row < rows && column < n, [&] {
          const auto results = tail.apply_four(four, row, column, place);
          y.store(place, vec(results[0], results[1], results[2], results[3]));
        });
        return;
      }
      // One condition and not two nested: PoCL 3.1 stores the latter where only one of them holds.
      for (uint32_t i = 0; i < 4; ++i)
        if_(row < rows && column + i < n,
            [&] { y[place + i] = tail.apply(four[i], row, column + i, place + i); });
    });
  });
}

ProductLaunch packed_product_launch(const PackedProduct& p, uint32_t n, uint32_t k, uint32_t rows,
                                    uint32_t x_stride) {
  ProductLaunch launch;
  launch.groups = {(n + p.tile_n - 1) / p.tile_n, (rows + p.tile_rows - 1) / p.tile_rows, 1};
  launch.params = {n, k, rows, x_stride};
  const auto layout = WeightParams::for_launch(p.weight, k);
  launch.params.insert(launch.params.end(), layout.begin(), layout.end());
  return launch;
}

std::optional<PackedProduct> packed_product_for(PackedProduct p, uint32_t n, uint32_t,
                                                uint32_t rows, const ir::Capabilities& device,
                                                uint32_t compute_units) {
  const bool fragments = std::ranges::any_of(device.fragments, [](const ir::FragmentShape& f) {
    return f.operand == f16 && f.accumulator == f32 && f.m == 16 && f.n == 16 && f.k == 16;
  });
  if (!fragments || !device.fragment_layout) return std::nullopt;
  p.subgroup = device.subgroup_size;
  p.aligned = n % 4 == 0;
  p.tile_rows = std::min(64u, (rows + 15) / 16 * 16);
  const auto cut = [&](uint32_t tile_n, uint32_t tile_k, uint32_t warps_n, uint32_t warps_k,
                       uint32_t stages) {
    p.tile_n = tile_n;
    p.tile_k = tile_k;
    p.warps_n = warps_n;
    p.warps_k = warps_k;
    p.stages = stages;
  };
  // The fastest of 20 on an H200 (gpu_products_bench --tune). Where there are fewer tiles than
  // compute units, a group has more subgroups along k or more tiles under way.
  if (n < 16 * compute_units)
    cut(16, 512, 1, 8, 4);
  else if (n < 64 * compute_units)
    cut(32, 256, 2, 4, 8);
  else if (p.tile_rows == 16)
    cut(64, 256, 2, 4, 3);
  else if (p.tile_rows == 32)
    cut(64, 128, 2, 2, 4);
  else
    cut(128, 128, 4, 2, 4);
  while (p.shared_bytes() > device.shared_bytes || p.lanes() > device.max_group_size) {
    if (p.stages > 3)
      --p.stages;
    else if (p.tile_k > 128 && p.tile_k / 2 % (p.warps_k * 32) == 0)
      p.tile_k /= 2;
    else if (p.warps_k > 1)
      p.warps_k /= 2;
    else if (p.tile_n > 32)
      p.tile_n /= 2;
    else if (p.tile_rows > 16)
      p.tile_rows -= 16;
    else
      return std::nullopt;
  }
  return p;
}

}  // namespace prism::ops
