// Tests nearest() against float64 scores of all rows.
#include "cpu/nearest/nearest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <span>

#include <gtest/gtest.h>

#include "cpu/elementwise.h"

namespace prism::cpu {
namespace {

struct Data {
  std::vector<std::byte> bytes;
  std::vector<float> values;  // after rounding to the type
};

Data random_rows(DType type, uint64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  Data data{std::vector<std::byte>(count * dtype_bytes(type)), std::vector<float>(count)};
  for (float& value : data.values) value = type == DType::i8 ? normal(random) * 30 : normal(random);
  store(DType::f32, data.values.data(), type, data.bytes.data(), count);
  load(type, data.bytes.data(), 1, DType::f32, data.values.data(), count);
  return data;
}

double score(Metric metric, const float* x, const float* y, uint64_t width) {
  double product = 0, xx = 0, yy = 0, apart = 0;
  for (uint64_t i = 0; i < width; ++i) {
    const double a = x[i], b = y[i];
    product += a * b;
    xx += a * a;
    yy += b * b;
    apart += (a - b) * (a - b);
  }
  if (metric == Metric::dot) return product;
  if (metric == Metric::l2) return apart;
  return yy == 0 ? 0 : product / std::sqrt(xx * yy);
}

std::vector<uint64_t> reference(Metric metric, const float* query, const std::vector<float>& rows,
                                uint64_t width, uint64_t k) {
  std::vector<std::pair<float, uint64_t>> all;
  for (uint64_t r = 0; r * width < rows.size(); ++r) {
    const auto value = static_cast<float>(score(metric, query, rows.data() + r * width, width));
    if (!std::isnan(value)) all.emplace_back(is_distance(metric) ? value : -value, r);
  }
  std::ranges::sort(all);
  std::vector<uint64_t> best;
  for (uint64_t i = 0; i < std::min<uint64_t>(k, all.size()); ++i) best.push_back(all[i].second);
  return best;
}

std::vector<uint64_t> rows_of(std::span<const NearRow> best) {
  std::vector<uint64_t> rows;
  for (const NearRow& each : best)
    if (each.is_row()) rows.push_back(each.row);
  return rows;
}

TEST(Nearest, AgreesWithFloat64) {
  std::mt19937 random(1);
  ThreadPool pool(2);
  for (const Metric metric : {Metric::cosine, Metric::dot, Metric::l2})
    for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::i8})
      for (const uint64_t width : {1, 7, 100, 129}) {
        const uint64_t count = 3001, queries = 7, k = 20;
        const Data data = random_rows(type, count * width, random);
        const Data query = random_rows(DType::f32, queries * width, random);
        NearestRows rows;
        rows.metric = metric;
        rows.type = type;
        rows.data = data.bytes.data();
        rows.count = count;
        rows.width = width;
        const auto best = nearest(pool, rows, query.values.data(), queries, k);
        for (uint64_t q = 0; q < queries; ++q)
          EXPECT_EQ(rows_of(std::span(best).subspan(q * k, k)),
                    reference(metric, query.values.data() + q * width, data.values, width, k))
              << metric_name(metric) << " " << dtype_name(type) << " " << width;
      }
}

TEST(Nearest, SmallDifferencesOfLargeNumbers) {
  std::mt19937 random(2);
  ThreadPool pool(1);
  std::normal_distribution<float> normal;
  const uint64_t width = 96, count = 2000;
  std::vector<float> data(count * width), query(width);
  for (float& value : data) value = 1000 + normal(random) / 16;
  for (float& value : query) value = 1000 + normal(random) / 16;
  NearestRows rows;
  rows.metric = Metric::l2;
  rows.data = reinterpret_cast<const std::byte*>(data.data());
  rows.count = count;
  rows.width = width;
  EXPECT_EQ(rows_of(nearest(pool, rows, query.data(), 1, 10)),
            reference(Metric::l2, query.data(), data, width, 10));
}

TEST(Nearest, TiesZerosAndNaN) {
  ThreadPool pool(2);
  const float nan = std::nanf("");
  const std::vector<float> data = {2, 0, 0, 0, 1, nan, 1, 0, 0, 1, 4, 0};
  NearestRows rows;
  rows.data = reinterpret_cast<const std::byte*>(data.data());
  rows.count = 6;
  rows.width = 2;
  const float query[] = {1, 0}, zero[] = {0, 0};
  EXPECT_EQ(rows_of(nearest(pool, rows, query, 1, 10)), (std::vector<uint64_t>{0, 3, 5, 1, 4}));
  EXPECT_TRUE(rows_of(nearest(pool, rows, zero, 1, 10)).empty());
  const uint32_t allowed = 0b101010;
  rows.allowed = &allowed;
  EXPECT_EQ(rows_of(nearest(pool, rows, query, 1, 1)), (std::vector<uint64_t>{3}));
}

TEST(Nearest, FewAllowedRows) {
  std::mt19937 random(3);
  ThreadPool pool(2);
  const uint64_t width = 33, count = 20000;
  const Data data = random_rows(DType::f32, count * width, random);
  for (const uint32_t one_of : {2, 100, 10000}) {
    std::vector<uint32_t> allowed((count + 31) / 32);
    std::vector<float> masked = data.values;
    for (uint64_t r = 0; r < count; ++r) {
      if (random() % one_of == 0)
        allowed[r / 32] |= uint32_t{1} << (r % 32);
      else
        masked[r * width] = std::nanf("");
    }
    NearestRows rows;
    rows.metric = Metric::l2;
    rows.data = data.bytes.data();
    rows.count = count;
    rows.width = width;
    rows.allowed = allowed.data();
    const auto best = nearest(pool, rows, data.values.data(), 1, 10);
    EXPECT_EQ(rows_of(best), reference(Metric::l2, data.values.data(), masked, width, 10));
  }
}

TEST(Nearest, Hamming) {
  std::mt19937 random(4);
  ThreadPool pool(2);
  const uint64_t width = 67, count = 999;
  std::vector<uint8_t> data(count * width);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  std::vector<std::pair<int, uint64_t>> all;
  for (uint64_t r = 0; r < count; ++r) {
    int bits = 0;
    for (uint64_t i = 0; i < width; ++i)
      bits += std::popcount(static_cast<unsigned>(data[i] ^ data[r * width + i]));
    all.emplace_back(bits, r);
  }
  std::ranges::sort(all);
  NearestRows rows;
  rows.metric = Metric::hamming;
  rows.type = DType::u8;
  rows.data = reinterpret_cast<const std::byte*>(data.data());
  rows.count = count;
  rows.width = width;
  const auto best = nearest(pool, rows, data.data(), 1, 50);
  for (size_t i = 0; i < best.size(); ++i) {
    EXPECT_EQ(best[i].row, all[i].second);
    EXPECT_EQ(best[i].score, static_cast<float>(all[i].first));
  }
}

TEST(Nearest, Within) {
  std::mt19937 random(5);
  ThreadPool pool(2);
  const uint64_t width = 16, count = 5000;
  const Data data = random_rows(DType::f32, count * width, random);
  NearestRows rows;
  rows.metric = Metric::cosine;
  rows.data = data.bytes.data();
  rows.count = count;
  rows.width = width;
  const auto within = nearest_within(pool, rows, data.values.data(), 0.5f);
  uint64_t wanted = 0;
  for (uint64_t r = 0; r < count; ++r)
    wanted +=
        score(Metric::cosine, data.values.data(), data.values.data() + r * width, width) >= 0.5;
  EXPECT_EQ(within.size(), wanted);
  EXPECT_EQ(within[0].row, 0u);
}

}  // namespace
}  // namespace prism::cpu
