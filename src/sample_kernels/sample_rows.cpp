// Kernels over rows: transpose through shared memory, sums, softmax, scans and subgroup operations.
#include <cmath>

#include <fmt/format.h>

#include "prism/kernel.h"
#include "sample_kernels/sample_case_tools.h"
#include "sample_kernels/sample_kernels.h"

namespace prism::kernels {

using namespace dsl;

namespace {
constexpr uint32_t kTile = 32;
}

ir::Kernel transpose() {
  return kernel("transpose", 256, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto rows = param("rows", u32), columns = param("columns", u32);
    auto tile = shared(f32, kTile * (kTile + 1));  // padded by one column to avoid bank conflicts
    const Value across = local_id() % kTile, down = local_id() / kTile;
    const Value column = group_id(0) * kTile + across;
    for (uint32_t i = 0; i < kTile; i += 8) {
      const Value row = group_id(1) * kTile + down + i;
      if_(row < rows && column < columns,
          [&] { tile[(down + i) * (kTile + 1) + across] = x[row * columns + column]; });
    }
    barrier();
    const Value out_column = group_id(1) * kTile + across;
    for (uint32_t i = 0; i < kTile; i += 8) {
      const Value out_row = group_id(0) * kTile + down + i;
      if_(out_row < columns && out_column < rows,
          [&] { y[out_row * rows + out_column] = tile[across * (kTile + 1) + down + i]; });
    }
  });
}

ir::Kernel sum_rows() {
  return kernel("sum_rows", 256, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto width = param("width", u32);
    const Value row = group_id() * width;
    Var sum(f32, 0.0f, "sum");
    for_(local_id(), width, group_size(), [&](Value i) { sum += x[row + i]; });
    const Value total = group_sum(sum);
    if_(local_id() == 0u, [&] { y[group_id()] = total; });
  });
}

ir::Kernel row_softmax() {
  return kernel("row_softmax", 128, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto width = param("width", u32);
    const Value row = group_id() * width;
    Var most(f32, constant_bits(f32, 0xff800000u), "most");
    for_(local_id(), width, group_size(), [&](Value i) { most = max(most, x[row + i]); });
    const Value top = group_max(most);
    Var sum(f32, 0.0f, "sum");
    for_(local_id(), width, group_size(), [&](Value i) { sum += exp(x[row + i] - top); });
    const Value scale = 1.0f / group_sum(sum);
    for_(local_id(), width, group_size(),
         [&](Value i) { y[row + i] = exp(x[row + i] - top) * scale; });
  });
}

ir::Kernel row_scan() {
  constexpr uint32_t kGroup = 128;
  return kernel("row_scan", kGroup, [] {
    auto x = in("x", u32);
    auto y = out("y", u32);
    auto width = param("width", u32);
    auto totals = shared(u32, kGroup, "totals");
    const Value row = group_id() * width;
    Var carry(u32, 0u, "carry");
    for_(0u, width, kGroup, [&](Value first) {
      const Value i = first + local_id();
      const Value mine = x.load_if(i < width, row + i);
      const Value within = subgroup_scan(ReduceOp::add, mine, false);
      if_(subgroup_lane() == subgroup_size() - 1u, [&] { totals[subgroup_id()] = within; });
      barrier();
      Var before(u32, 0u, "before");
      for_(subgroup_id(), [&](Value s) { before += totals[s]; });
      if_(i < width, [&] { y[row + i] = carry + before + within; });
      const Value chunk = group_sum(mine);
      carry += chunk;
      barrier();
    });
  });
}

ir::Kernel subgroup_mix() {
  return kernel("subgroup_mix", 64, [] {
    require_subgroup_size(8);
    auto x = in("x", u32);
    auto y = out("y", u32);
    const Value i = global_id(), v = x[i];
    const std::vector<Value> results = {subgroup_sum(v),
                                        subgroup_reduce(ReduceOp::min, v),
                                        subgroup_reduce(ReduceOp::bit_xor, v),
                                        subgroup_scan(ReduceOp::add, v, true),
                                        subgroup_scan(ReduceOp::max, v, false),
                                        subgroup_shuffle(v, 7u - subgroup_lane()),
                                        subgroup_shuffle_xor(v, 2),
                                        subgroup_id() * subgroup_size() + subgroup_lane()};
    for (uint32_t f = 0; f < 8; ++f) y[i * 8u + f] = results[f];
  });
}

namespace {

std::vector<KernelCase> transpose_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  std::vector<std::pair<uint32_t, uint32_t>> shapes = {{1, 1}, {33, 65}};
  if (!quick) shapes.insert(shapes.end(), {{32, 32}, {7, 301}, {257, 129}});
  for (auto [rows, columns] : shapes) {
    KernelCase c;
    c.name = fmt::format("{}x{}", rows, columns);
    c.groups = {groups_for(columns, kTile), groups_for(rows, kTile), 1};
    c.params = {rows, columns};
    const auto x = random.floats(rows * columns);
    std::vector<double> y(x.size());
    for (uint32_t r = 0; r < rows; ++r)
      for (uint32_t k = 0; k < columns; ++k) y[k * rows + r] = x[r * columns + k];
    c.buffers = {bytes_of(x), poison(x.size(), DType::f32)};
    c.expected = {{}, y};
    c.work_bytes = 8.0 * static_cast<double>(x.size());
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<uint32_t> widths(bool quick) {
  return quick ? std::vector<uint32_t>{1, 300} : std::vector<uint32_t>{1, 31, 128, 300, 1021};
}

KernelCase row_case(uint32_t width, uint32_t rows) {
  KernelCase c;
  c.name = fmt::format("{} rows of {}", rows, width);
  c.groups = {rows, 1, 1};
  c.params = {width};
  return c;
}

std::vector<KernelCase> sum_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint32_t width : widths(quick)) {
    constexpr uint32_t kRows = 5;
    KernelCase c = row_case(width, kRows);
    const auto x = random.floats(width * kRows);
    std::vector<double> y(kRows, 0.0);
    for (size_t i = 0; i < x.size(); ++i) y[i / width] += x[i];
    c.buffers = {bytes_of(x), poison(kRows, DType::f32)};
    c.expected = {{}, y};
    c.tolerance = 1e-11;
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> softmax_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint32_t width : widths(quick)) {
    constexpr uint32_t kRows = 3;
    KernelCase c = row_case(width, kRows);
    const auto x = random.floats(width * kRows, -10, 10);
    std::vector<double> y(x.size());
    for (uint32_t r = 0; r < kRows; ++r) {
      double top = -HUGE_VAL, sum = 0;
      for (uint32_t i = 0; i < width; ++i) top = std::max<double>(top, x[r * width + i]);
      for (uint32_t i = 0; i < width; ++i) sum += std::exp(x[r * width + i] - top);
      for (uint32_t i = 0; i < width; ++i)
        y[r * width + i] = std::exp(x[r * width + i] - top) / sum;
    }
    c.buffers = {bytes_of(x), poison(x.size(), DType::f32)};
    c.expected = {{}, y};
    c.tolerance = 1e-11;
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> scan_cases(uint64_t seed, bool quick) {
  std::vector<KernelCase> cases;
  CaseRandom random(seed);
  for (uint32_t width : widths(quick)) {
    constexpr uint32_t kRows = 3;
    KernelCase c = row_case(width, kRows);
    const auto x = random.words(width * kRows);
    std::vector<double> y;
    for (uint32_t r = 0; r < kRows; ++r) {
      uint32_t sum = 0;
      for (uint32_t i = 0; i < width; ++i) y.push_back(sum += x[r * width + i]);
    }
    c.buffers = {bytes_of(x), poison(x.size(), DType::u32)};
    c.expected = {{}, y};
    cases.push_back(std::move(c));
  }
  return cases;
}

std::vector<KernelCase> mix_cases(uint64_t seed, bool) {
  constexpr uint32_t kGroups = 3, kSize = 8;
  KernelCase c;
  c.name = "3 groups";
  c.groups = {kGroups, 1, 1};
  const auto x = CaseRandom(seed).words(kGroups * 64);
  std::vector<double> y;
  for (uint32_t i = 0; i < x.size(); ++i) {
    const uint32_t lane = i % kSize, first = i - lane;
    uint32_t sum = 0, least = ~0u, mixed = 0, before = 0, most = 0;
    for (uint32_t l = 0; l < kSize; ++l) {
      const uint32_t v = x[first + l];
      sum += v, least = std::min(least, v), mixed ^= v;
      if (l < lane) before += v;
      if (l <= lane) most = std::max(most, v);
    }
    for (uint32_t r :
         {sum, least, mixed, before, most, x[first + 7 - lane], x[first + (lane ^ 2)], i % 64})
      y.push_back(r);
  }
  c.buffers = {bytes_of(x), poison(x.size() * 8, DType::u32)};
  c.expected = {{}, y};
  return {c};
}

}  // namespace

void add_rows(std::vector<SampleKernel>& list) {
  list.push_back({"transpose", "transpose through shared memory", transpose, transpose_cases});
  list.push_back({"sum_rows", "the sum of each row", sum_rows, sum_cases});
  list.push_back({"row_softmax", "the softmax of each row", row_softmax, softmax_cases});
  list.push_back({"row_scan", "inclusive sums along each row", row_scan, scan_cases});
  list.push_back(
      {"subgroup_mix", "every subgroup operation, subgroups of 8", subgroup_mix, mix_cases});
}

}  // namespace prism::kernels
