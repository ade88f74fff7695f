// Matrix products with fragments: f16 with async copies, int8, and a small attention in registers.
#include <cmath>

#include <fmt/format.h>

#include "prism/error.h"
#include "prism/kernel.h"
#include "sample_kernels/sample_case_tools.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::kernels {

using namespace dsl;

namespace {

constexpr uint32_t kWarp = 32;

// Shared rows are padded by 16 bytes, so that eight rows read together are in different banks.
uint32_t padded(uint32_t elements, DType type) {
  return elements + static_cast<uint32_t>(16 / dtype_bytes(type));
}

// Copies rows x columns elements at (row, column) of x into the tile, 16 bytes per lane and round;
// only the rounds of one of several parts, so that copies can be interleaved with multiplications.
struct TileCopy {
  const Array& tile;
  const In& x;
  uint32_t rows, columns, lanes;
  DType type;

  uint32_t turns() const { return (rows * columns / each() + lanes - 1) / lanes; }
  uint32_t each() const { return static_cast<uint32_t>(16 / dtype_bytes(type)); }

  void turn(uint32_t number, Value wanted, Value tile_start, Value row, Value column,
            Value stride) const {
    const uint32_t chunks = columns / each(), total = rows * chunks;
    const Value chunk = local_id() + number * lanes;
    const Value r = chunk / chunks, c = chunk % chunks * each();
    const auto copy = [&] {
      async_copy_if(wanted, tile, tile_start + r * padded(columns, type) + c, x,
                    (row + r) * stride + column + c, each());
    };
    if ((number + 1) * lanes <= total)
      copy();
    else
      if_(chunk < total, copy);
  }
};

}  // namespace

ir::Kernel matmul_fragments(const MatmulTile& tile) {
  const uint32_t lanes = tile.warps_m * tile.warps_n * kWarp;
  const uint32_t own_m = tile.m / tile.warps_m / 16, own_n = tile.n / tile.warps_n / 16;
  const DType type = tile.operand;
  if (tile.stages < 2 || (tile.run_ahead && tile.k % (type == i8 ? 64 : 32) != 0))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("matmul_fragments: {} stages, k {}; needs at least two stages, and two "
                            "fragments along k to prefetch",
                            tile.stages, tile.k));
  const uint32_t fragment_k = type == i8 ? 32 : 16;
  const DType sum_type = type == i8 ? i32 : f32;
  const FragmentSize size{16, 16, static_cast<uint16_t>(fragment_k)};
  const std::string name = fmt::format("matmul_{}_{}x{}x{}_{}x{}_{}", dtype_name(type), tile.m,
                                       tile.n, tile.k, tile.warps_m, tile.warps_n, tile.stages) +
                           (tile.run_ahead ? "_ahead" : "");
  return kernel(name, lanes, [&] {
    require_subgroup_size(kWarp);
    auto a = in("a", type), b = in("b", type);
    auto c = out("c", tile.result);
    auto m = param("m", u32), n = param("n", u32), k = param("k", u32);
    const uint32_t a_row = padded(tile.k, type), b_row = padded(tile.n, type);
    const uint32_t a_size = tile.m * a_row, b_size = tile.k * b_row;
    auto a_tile = shared(type, a_size * tile.stages, "a_tile");
    auto b_tile = shared(type, b_size * tile.stages, "b_tile");

    // Groups are ordered in blocks of eight rows of tiles, so that concurrent groups share b in the
    // cache.
    constexpr uint32_t kBlock = 8;
    const Value tiles_m = m / tile.m, tiles_n = n / tile.n;
    const Value block = group_id() / (tiles_n * kBlock), within = group_id() % (tiles_n * kBlock);
    const Value height = min(tiles_m - block * kBlock, kBlock);
    const Value row = (block * kBlock + within % height) * tile.m,
                column = within / height * tile.n;
    const Value warp_row = subgroup_id() / tile.warps_n * (own_m * 16),
                warp_column = subgroup_id() % tile.warps_n * (own_n * 16);

    const TileCopy copy_a{a_tile, a, tile.m, tile.k, lanes, type},
        copy_b{b_tile, b, tile.k, tile.n, lanes, type};
    const uint32_t turns = copy_a.turns() + copy_b.turns();
    // The rounds [first, last) of fetching the tiles of one step; beyond the last step nothing is
    // read.
    const auto fetch = [&](Value step, Value slot, uint32_t first, uint32_t last) {
      const Value wanted = step < k;
      for (uint32_t t = first; t < last; ++t) {
        if (t < copy_a.turns())
          copy_a.turn(t, wanted, slot * a_size, row, step, k);
        else
          copy_b.turn(t - copy_a.turns(), wanted, slot * b_size, step, column, n);
      }
    };

    std::vector<Fragment> sums, rows, columns;
    for (uint32_t i = 0; i < own_m * own_n; ++i) {
      sums.push_back(accumulator(sum_type, size));
      sums.back().fill(0);
    }
    const uint32_t inners = tile.k / fragment_k, sets = tile.run_ahead ? 2 : 1;
    for (uint32_t i = 0; i < sets * own_m; ++i) rows.push_back(fragment_a(type, size));
    for (uint32_t j = 0; j < sets * own_n; ++j) columns.push_back(fragment_b(type, size));
    const auto load_set = [&](Value from, uint32_t inner) {
      const uint32_t set = inner % sets, step = inner % inners * fragment_k;
      for (uint32_t i = 0; i < own_m; ++i)
        rows[set * own_m + i].load(
            a_tile, from * a_size + warp_row * a_row + (i * 16 * a_row + step), a_row);
      for (uint32_t j = 0; j < own_n; ++j)
        columns[set * own_n + j].load(b_tile, from * b_size + warp_column + (step * b_row + j * 16),
                                      b_row);
    };
    const auto multiply_set = [&](uint32_t inner) {
      const uint32_t set = inner % sets;
      for (uint32_t i = 0; i < own_m; ++i)
        for (uint32_t j = 0; j < own_n; ++j)
          sums[i * own_n + j].multiply(rows[set * own_m + i], columns[set * own_n + j]);
    };

    const Value steps = k / tile.k;
    for (uint32_t s = 0; s + 1 < tile.stages; ++s) {
      fetch(constant(u32, s * tile.k), constant(u32, s), 0, turns);
      async_commit();
    }
    Var slot(u32, 0u, "slot");
    Var fetch_slot(u32, tile.stages - 1, "fetch_slot");
    const auto following = [&](const Var& s) { return select(s == tile.stages - 1, 0u, s + 1u); };
    const auto arrive = [&] {
      async_wait(tile.stages - 2);
      barrier();
    };
    // One of `parts` equal parts of the prefetch for the step stages - 1 ahead.
    const auto fetch_ahead = [&](Value step, uint32_t part, uint32_t parts) {
      fetch((step + (tile.stages - 1)) * tile.k, fetch_slot, turns * part / parts,
            turns * (part + 1) / parts);
      if (part + 1 < parts) return;
      async_commit();
      fetch_slot = following(fetch_slot);
    };
    if (tile.run_ahead) {
      arrive();
      load_set(slot, 0);
      for_(steps, [&](Value step) {
        for (uint32_t inner = 0; inner < inners; ++inner) {
          if (inner + 1 < inners) {
            load_set(slot, inner + 1);
            fetch_ahead(step, inner, inners - 1);
          } else {
            // Loads the next tile's first operands while this tile's last are multiplied. After the
            // last step the current tile is loaded again, and not used.
            arrive();
            slot = select(step + 1u < steps, following(slot), slot);
            load_set(slot, inners);
          }
          multiply_set(inner);
        }
      });
    } else {
      for_(steps, [&](Value step) {
        arrive();
        fetch_ahead(step, 0, 1);
        for (uint32_t inner = 0; inner < inners; ++inner) {
          load_set(slot, inner);
          multiply_set(inner);
        }
        slot = following(slot);
      });
    }
    for (uint32_t i = 0; i < own_m; ++i)
      for (uint32_t j = 0; j < own_n; ++j)
        sums[i * own_n + j].store(c, (row + warp_row + i * 16) * n + column + warp_column + j * 16,
                                  n);
  });
}

namespace {
// Small enough to fit 32 KiB of shared memory even with one element per word, on devices without
// narrow arrays.
MatmulTile int8_tile() {
  MatmulTile tile;
  tile.n = 16;
  tile.warps_n = 1;
  tile.operand = i8;
  tile.result = i32;
  return tile;
}
}  // namespace

ir::Kernel int8_matmul() { return matmul_fragments(int8_tile()); }

ir::Kernel fragment_attention() {
  return kernel("fragment_attention", 64, [] {
    auto q = in("q", f16), keys = in("k", f16), v = in("v", f16);
    auto o = out("o", f32);
    auto tiles = param("tiles", u32);
    // One tile per subgroup; the device decides how many subgroups a group has.
    const Value subgroups = group_size() / subgroup_size(), first = group_id() * subgroups;
    if_(first < tiles, [&] {
      const Value start = min(first + subgroup_id(), tiles - 1u) * 256u;
      auto a = fragment_a(f16);
      auto b = fragment_b(f16);
      auto scores = accumulator(f32), reduced = accumulator(f32), result = accumulator(f32);
      a.load(q, start, 16u);
      b.load(keys, start, 16u, Layout::column_major);
      scores.fill(0.0f);
      scores.multiply(a, b);
      scores.map([](Value s, Value row, Value column) {
        return select(column <= row, s * 0.25f, constant(f32, -1e30));
      });
      reduced.row_reduce(ReduceOp::max, scores);
      scores.map({scores, reduced},
                 [](const std::vector<Value>& e, Value, Value) { return exp(e[0] - e[1]); });
      reduced.row_reduce(ReduceOp::add, scores);
      a.convert(scores);
      b.load(v, start, 16u);
      result.fill(0.0f);
      result.multiply(a, b);
      result.map({result, reduced},
                 [](const std::vector<Value>& e, Value, Value) { return e[0] / e[1]; });
      result.store(o, start, 16u);
    });
  });
}

namespace {

KernelCase product_case(const MatmulTile& tile, uint32_t m, uint32_t n, uint32_t k) {
  KernelCase c;
  c.name = fmt::format("{}x{}x{}", m, n, k);
  c.groups = {m / tile.m * (n / tile.n), 1, 1};
  c.params = {m, n, k};
  c.work_operations = 2.0 * m * n * k;
  return c;
}

std::vector<KernelCase> half_cases(DType type, uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  std::vector<std::array<uint32_t, 3>> shapes = {{32, 64, 96}};
  if (!quick) shapes.insert(shapes.end(), {{32, 32, 32}, {96, 64, 128}, {320, 32, 64}});
  for (auto [m, n, k] : shapes) {
    KernelCase c = product_case({}, m, n, k);
    const auto fa = random.floats(m * k), fb = random.floats(k * n);
    const auto a = rounded(fa, type), b = rounded(fb, type);
    std::vector<double> y(m * n, 0.0);
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t l = 0; l < k; ++l)
        for (uint32_t j = 0; j < n; ++j) y[i * n + j] += a[i * k + l] * b[l * n + j];
    c.buffers = {stored(fa, type), stored(fb, type), poison(m * n, DType::f32)};
    c.expected = {{}, {}, y};
    c.tolerance = 1e-10;
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> int8_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint32_t k : quick ? std::vector<uint32_t>{96} : std::vector<uint32_t>{32, 96, 160}) {
    const uint32_t m = 64, n = 32;
    KernelCase c = product_case(int8_tile(), m, n, k);
    const auto a = random.octets(m * k), b = random.octets(k * n);
    std::vector<double> y(m * n, 0.0);
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t l = 0; l < k; ++l)
        for (uint32_t j = 0; j < n; ++j)
          y[i * n + j] +=
              int(static_cast<int8_t>(a[i * k + l])) * static_cast<int8_t>(b[l * n + j]);
    c.buffers = {bytes_of(a), bytes_of(b), poison(m * n, DType::i32)};
    c.expected = {{}, {}, y};
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> attention_cases(uint64_t seed, bool) {
  constexpr uint32_t kTiles = 5;
  CaseRandom random(seed);
  KernelCase c;
  c.name = "5 tiles";
  c.groups = {kTiles, 1, 1};
  c.params = {kTiles};
  std::vector<std::vector<float>> raw;
  std::vector<std::vector<double>> x;
  for (int i = 0; i < 3; ++i) {
    raw.push_back(random.floats(kTiles * 256, -2, 2));
    x.push_back(rounded(raw.back(), DType::f16));
    c.buffers.push_back(stored(raw.back(), DType::f16));
  }
  std::vector<double> o(kTiles * 256, 0.0);
  for (uint32_t t = 0; t < kTiles * 256; t += 256)
    for (uint32_t r = 0; r < 16; ++r) {
      double scores[16], top = -HUGE_VAL, sum = 0;
      for (uint32_t j = 0; j <= r; ++j) {
        scores[j] = 0;
        for (uint32_t d = 0; d < 16; ++d)
          scores[j] += x[0][t + r * 16 + d] * x[1][t + j * 16 + d] * 0.25;
        top = std::max(top, scores[j]);
      }
      for (uint32_t j = 0; j <= r; ++j) sum += scores[j] = std::exp(scores[j] - top);
      for (uint32_t j = 0; j <= r; ++j)
        for (uint32_t d = 0; d < 16; ++d)
          o[t + r * 16 + d] += scores[j] / sum * x[2][t + j * 16 + d];
    }
  c.buffers.push_back(poison(o.size(), DType::f32));
  c.expected = {{}, {}, {}, o};
  c.tolerance = 1e-6;  // the weights are rounded to f16 for the second product
  return {c};
}

}  // namespace

void add_fragments(std::vector<SampleKernel>& list) {
  for (DType type : {DType::f16, DType::bf16})
    list.push_back({fmt::format("matmul_{}", dtype_name(type)),
                    fmt::format("c = a b by fragments of {}, with async copies", dtype_name(type)),
                    [type] {
                      MatmulTile tile;
                      tile.operand = type;
                      return matmul_fragments(tile);
                    },
                    [type](uint64_t seed, bool quick) { return half_cases(type, seed, quick); }});
  list.push_back({"matmul_f16_ahead", "the same with operands prefetched during the multiplication",
                  [] {
                    MatmulTile tile;
                    tile.run_ahead = true;
                    return matmul_fragments(tile);
                  },
                  [](uint64_t seed, bool quick) { return half_cases(DType::f16, seed, quick); }});
  list.push_back({"matmul_i8", "c = a b by fragments of i8", int8_matmul, int8_cases});
  list.push_back({"fragment_attention",
                  "softmax(q k) v in fragments: map, row reduction, conversion", fragment_attention,
                  attention_cases});
}

}  // namespace prism::kernels
