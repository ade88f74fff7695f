// Compares an indexer's scores with float64 on every device found, and checks rejected inputs.
#include "ops/attention/indexer.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "support/devices/devices.h"
#include "support/seed.h"

namespace prism {
namespace {

struct Case {
  int64_t heads, dim, block, entries;
  DType keys;
  bool weighted;
  std::vector<std::pair<int32_t, int32_t>> texts;  // queries and keys of each
};

void check(const Case& c, const Device& device, std::mt19937_64& engine) {
  std::normal_distribution<double> normal;
  const auto random = [&](const Shape& shape, DType type) {
    std::vector<double> values(static_cast<size_t>(shape.elements()));
    for (double& each : values) each = normal(engine);
    return cast(from_doubles(values, shape, DType::f32, device), type).eval();
  };
  const auto texts = static_cast<int64_t>(c.texts.size()), blocks = texts * c.entries + 1;
  std::vector<int32_t> spans, table;
  int32_t rows = 0;
  for (size_t t = 0; t < c.texts.size(); ++t) {
    const auto [queries, keys] = c.texts[t];
    for (const int32_t word : {rows, queries, keys, static_cast<int32_t>(t)}) spans.push_back(word);
    rows += queries;
    for (int64_t e = 0; e < c.entries; ++e)
      table.push_back(static_cast<int32_t>(blocks - 1 - (e * texts + static_cast<int64_t>(t))));
  }
  const int64_t all_rows = rows + 1;  // the last row belongs to no text
  const Tensor q = random({all_rows, c.heads, c.dim}, DType::f32),
               keys = random({blocks, c.block, 1, c.dim}, c.keys),
               weights = random({all_rows, c.heads}, DType::f32);
  const std::vector<double> found = indexer_scores(q, c.weighted ? weights : Tensor(), keys,
                                                   from_vector(spans, {texts, 4}, device),
                                                   from_vector(table, {texts, c.entries}, device))
                                        .to_doubles();
  const std::vector<double> q_values = q.to_doubles(), k_values = keys.to_doubles(),
                            w_values = weights.to_doubles();
  const int64_t positions = c.entries * c.block, of_row = c.weighted ? 1 : c.heads;
  ASSERT_EQ(found.size(), static_cast<size_t>(all_rows * of_row * positions));
  for (int64_t row = 0; row < all_rows; ++row) {
    int64_t seen = 0, text = 0;
    for (int64_t t = 0; t < texts; ++t) {
      const int32_t* span = spans.data() + 4 * t;
      if (row < span[0] || row >= span[0] + span[1]) continue;
      text = t;
      seen = span[2] - span[1] + (row - span[0]) + 1;
    }
    for (int64_t key = 0; key < positions; ++key) {
      double sum = 0, size = 1;
      for (int64_t h = 0; h < c.heads; ++h) {
        double product = 0;
        const int64_t place = table[static_cast<size_t>(text * c.entries + key / c.block)];
        for (int64_t d = 0; d < c.dim; ++d)
          product += q_values[static_cast<size_t>((row * c.heads + h) * c.dim + d)] *
                     k_values[static_cast<size_t>((place * c.block + key % c.block) * c.dim + d)];
        if (c.weighted) {
          const double part =
              w_values[static_cast<size_t>(row * c.heads + h)] * std::max(product, 0.0);
          sum += part;
          size += std::fabs(part);
          continue;
        }
        const double got = found[static_cast<size_t>((row * c.heads + h) * positions + key)];
        if (key < seen)
          ASSERT_NEAR(got, product, 1e-5 * (1 + std::fabs(product)))
              << device.id() << " row " << row;
        else
          ASSERT_TRUE(std::isinf(got) && got < 0)
              << device.id() << " row " << row << " key " << key;
      }
      if (!c.weighted) continue;
      const double got = found[static_cast<size_t>(row * positions + key)];
      if (key < seen)
        ASSERT_NEAR(got, sum, 1e-5 * size) << device.id() << " row " << row << " key " << key;
      else
        ASSERT_TRUE(std::isinf(got) && got < 0) << device.id() << " row " << row << " key " << key;
    }
  }
}

TEST(IndexerDevice, ScoresTheKeysThatARowSees) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 engine(seed);
  const std::vector<Case> cases = {
      {1, 64, 16, 3, DType::f32, true, {{1, 1}}},
      {3, 33, 4, 21, DType::f16, true, {{7, 70}, {1, 84}}},
      {2, 8, 128, 1, DType::bf16, false, {{5, 5}, {3, 9}, {1, 100}}},
  };
  for (const Device& device : test::every_device())
    for (const Case& c : cases) check(c, device, engine);
}

// Few distinct numbers, so that many are equal at the border, and numbers without equals.
TEST(IndexerDevice, MasksAllButTheLargest) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 engine(seed);
  constexpr int64_t kRows = 5;
  for (const int64_t width : {1, 7, 130})
    for (const int64_t count : {1, 7, 64}) {
      if (count > width) continue;
      for (const uint64_t distinct : {3u, 1000000u}) {
        std::vector<float> scores;
        for (int64_t i = 0; i < kRows * width; ++i)
          scores.push_back(static_cast<float>(engine() % distinct) - 1.0f);
        for (size_t i = 0; i < scores.size(); i += 5)
          scores[i] = i % 2 ? -0.0f : -std::numeric_limits<float>::infinity();
        std::vector<float> wanted(scores.size(), -std::numeric_limits<float>::infinity());
        for (int64_t row = 0; row < kRows; ++row) {
          std::vector<int64_t> order(static_cast<size_t>(width));
          std::iota(order.begin(), order.end(), row * width);
          std::partial_sort(
              order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
                return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
              });
          for (int64_t i = 0; i < count; ++i)
            wanted[static_cast<size_t>(order[static_cast<size_t>(i)])] = 0;
        }
        for (const Device& device : test::every_device())
          EXPECT_EQ(mask_of_largest(from_vector(scores, {kRows, width}, device), count)
                        .to_vector<float>(),
                    wanted)
              << device.id() << ", " << count << " of " << width << ", " << distinct;
      }
    }
}

TEST(IndexerDevice, MistakesAreErrors) {
  const Device cpu = Device::cpu();
  const Tensor q = zeros({2, 3, 8}, DType::f32, cpu), keys = zeros({2, 4, 1, 8}, DType::f16, cpu);
  const auto scores = [&](std::vector<int32_t> span, int32_t block, const Tensor& cache) {
    return indexer_scores(q, {}, cache, from_vector(span, {1, 4}, cpu),
                          from_vector<int32_t>({block}, {1, 1}, cpu))
        .eval();
  };
  EXPECT_NO_THROW(scores({0, 2, 4, 0}, 1, keys));
  EXPECT_THROW(scores({0, 2, 5, 0}, 1, keys), Error) << "more keys than the table has";
  EXPECT_THROW(scores({1, 2, 4, 0}, 1, keys), Error) << "more rows than q has";
  EXPECT_THROW(scores({0, 2, 4, 1}, 1, keys), Error) << "no such text";
  EXPECT_THROW(scores({0, 2, 4, 0}, 2, keys), Error) << "no such block";
  EXPECT_THROW(scores({0, 2, 4, 0}, 1, zeros({2, 4, 1, 9}, DType::f16, cpu)), Error);
  EXPECT_THROW(mask_of_largest(q, 9), Error) << "more than a row has";
  EXPECT_THROW(mask_of_largest(q, 0), Error);
}

}  // namespace
}  // namespace prism
