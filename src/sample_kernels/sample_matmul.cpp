// A tiled f32 matrix product, and int8 dot products of rows.
#include <fmt/format.h>

#include "prism/kernel.h"
#include "sample_kernels/sample_case_tools.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::kernels {

using namespace dsl;

namespace {

// A group computes 128 x 128 of c and a lane 8 x 8 of that, in steps of 8 along k. Two tiles of
// each operand take 16 KiB of shared memory, the smallest size of any device; the next step's
// elements are prefetched into registers.
constexpr uint32_t kTile = 128, kStep = 8, kLanes = 256;

// Four consecutive elements of a row of x (rows x columns), zeros beyond its edges.
std::vector<Value> load_four(const In& x, Value row, Value column, Value rows, Value columns,
                             Value whole) {
  std::vector<Var> parts;
  for (int i = 0; i < 4; ++i) parts.emplace_back(f32, 0.0f, "part");
  if_(
      whole,
      [&] {
        const Value four = x.load_if(row < rows && column < columns, row * columns + column, 4);
        for (uint32_t i = 0; i < 4; ++i) parts[i] = four[i];
      },
      [&] {
        for (uint32_t i = 0; i < 4; ++i)
          parts[i] = x.load_if(row < rows && column + i < columns, row * columns + column + i);
      });
  return {parts[0], parts[1], parts[2], parts[3]};
}

}  // namespace

ir::Kernel matmul_f32() {
  return kernel("matmul_f32", kLanes, [] {
    auto a = in("a", f32), b = in("b", f32);
    auto c = out("c", f32);
    auto m = param("m", u32), n = param("n", u32), k = param("k", u32);
    auto a_tile = shared(f32, 2 * kStep * kTile,
                         "a_tile");  // [step][row]: a lane reads adjacent rows
    auto b_tile = shared(f32, 2 * kStep * kTile, "b_tile");  // [step][column]
    const Value lane = local_id(), across = lane % 16u, down = lane / 16u;
    const Value first_row = group_id(1) * kTile, first_column = group_id(0) * kTile;
    const Value a_row = lane / 2u, a_step = lane % 2u * 4u;
    const Value b_step = lane / 32u, b_column = lane % 32u * 4u;
    const Value k_whole = k % 4u == 0u, n_whole = n % 4u == 0u;

    const auto fetch_a = [&](Value step) {
      return load_four(a, first_row + a_row, step + a_step, m, k, k_whole);
    };
    const auto fetch_b = [&](Value step) {
      return load_four(b, step + b_step, first_column + b_column, k, n, n_whole);
    };
    const auto put = [&](const std::vector<Value>& from_a, const std::vector<Value>& from_b,
                         Value half) {
      for (uint32_t i = 0; i < 4; ++i) a_tile[half + (a_step + i) * kTile + a_row] = from_a[i];
      b_tile.store(half + b_step * kTile + b_column,
                   vec(from_b[0], from_b[1], from_b[2], from_b[3]));
    };

    std::vector<Var> sums;
    for (uint32_t i = 0; i < 64; ++i)
      sums.emplace_back(f32, 0.0f, fmt::format("sum_{}_{}", i / 8, i % 8));

    put(fetch_a(constant(u32, 0)), fetch_b(constant(u32, 0)), constant(u32, 0));
    barrier();
    Var half(u32, 0u, "half");
    for_(0u, k, kStep, [&](Value step) {
      const auto next_a = fetch_a(step + kStep), next_b = fetch_b(step + kStep);
      const Value now = half;
      unrolled_for(kStep, [&](Value s) {
        const Value at = now + s * kTile;
        std::vector<Value> rows, columns;
        for (uint32_t part = 0; part < 2; ++part) {
          const Value four_rows = a_tile.load(at + down * 4u + part * 64, 4);
          const Value four_columns = b_tile.load(at + across * 4u + part * 64, 4);
          for (uint32_t i = 0; i < 4; ++i)
            rows.push_back(four_rows[i]), columns.push_back(four_columns[i]);
        }
        for (uint32_t i = 0; i < 8; ++i)
          for (uint32_t j = 0; j < 8; ++j)
            sums[i * 8 + j] = fma(rows[i], columns[j], sums[i * 8 + j]);
      });
      const Value other = (kStep * kTile) - now;
      put(next_a, next_b, other);
      half = other;
      barrier();
    });

    for (uint32_t i = 0; i < 8; ++i) {
      const Value row = first_row + down * 4u + (i / 4 * 64 + i % 4);
      for (uint32_t part = 0; part < 2; ++part) {
        const Value column = first_column + across * 4u + part * 64;
        const uint32_t s = i * 8 + part * 4;
        if_(
            n_whole,
            [&] {
              c.store_if(row < m && column < n, row * n + column,
                         vec(sums[s], sums[s + 1], sums[s + 2], sums[s + 3]));
            },
            [&] {
              for (uint32_t j = 0; j < 4; ++j)
                c.store_if(row < m && column + j < n, row * n + column + j, sums[s + j]);
            });
      }
    }
  });
}

ir::Kernel dot_rows() {
  return kernel("dot_rows", 64, [] {
    auto a = in("a", i8), b = in("b", i8);
    auto y = out("y", i32);
    auto words = param("words", u32);
    const Value row = group_id() * words;
    Var sum(i32, 0, "sum");
    Var unsigned_sum(u32, 0u, "unsigned_sum");
    for_(local_id(), words, group_size(), [&](Value i) {
      const Value x = a.load_words(row + i), w = b.load_words(i);
      sum = dot4_i8(x, w, sum);
      unsigned_sum = dot4_u8(x, w, unsigned_sum);
    });
    const Value total = group_sum(sum), unsigned_total = group_sum(unsigned_sum);
    if_(local_id() == 0u, [&] {
      y[group_id() * 2u] = total;
      y[group_id() * 2u + 1u] = bitcast(i32, unsigned_total);
    });
  });
}

namespace {

std::vector<KernelCase> matmul_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  std::vector<std::array<uint32_t, 3>> shapes = {{1, 1, 1}, {37, 133, 19}};
  if (!quick) shapes.insert(shapes.end(), {{128, 128, 64}, {130, 64, 33}, {64, 260, 100}});
  for (auto [m, n, k] : shapes) {
    KernelCase c;
    c.name = fmt::format("{}x{}x{}", m, n, k);
    c.groups = {groups_for(n, kTile), groups_for(m, kTile), 1};
    c.params = {m, n, k};
    const auto a = random.floats(m * k), b = random.floats(k * n);
    std::vector<double> y(m * n, 0.0);
    for (uint32_t i = 0; i < m; ++i)
      for (uint32_t l = 0; l < k; ++l)
        for (uint32_t j = 0; j < n; ++j)
          y[i * n + j] += static_cast<double>(a[i * k + l]) * b[l * n + j];
    c.buffers = {bytes_of(a), bytes_of(b), poison(m * n, DType::f32)};
    c.expected = {{}, {}, y};
    c.tolerance = 1e-11;
    c.work_operations = 2.0 * m * n * k;
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> dot_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint32_t words :
       quick ? std::vector<uint32_t>{100} : std::vector<uint32_t>{1, 63, 100, 1024}) {
    constexpr uint32_t kRows = 5;
    KernelCase c;
    c.name = fmt::format("{} words a row", words);
    c.groups = {kRows, 1, 1};
    c.params = {words};
    const auto a = random.octets(kRows * words * 4), b = random.octets(words * 4);
    std::vector<double> y;
    for (uint32_t r = 0; r < kRows; ++r) {
      int64_t sum = 0;
      uint32_t unsigned_sum = 0;
      for (uint32_t i = 0; i < words * 4; ++i) {
        sum += int64_t(static_cast<int8_t>(a[r * words * 4 + i])) * static_cast<int8_t>(b[i]);
        unsigned_sum += uint32_t(a[r * words * 4 + i]) * b[i];
      }
      y.push_back(static_cast<double>(sum));
      y.push_back(static_cast<int32_t>(unsigned_sum));
    }
    c.buffers = {bytes_of(a), bytes_of(b), poison(kRows * 2, DType::i32)};
    c.expected = {{}, {}, y};
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

void add_matmul(std::vector<SampleKernel>& list) {
  list.push_back({"matmul_f32", "c = a b in tiles of 128 x 128", matmul_f32, matmul_cases});
  list.push_back({"dot_rows", "int8 dot products of rows", dot_rows, dot_cases});
}

}  // namespace prism::kernels
