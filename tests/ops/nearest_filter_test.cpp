// Tests the filter of nearest_rows, which devices with matrix fragments use for many rows, on the
// interpreter: the rows it finds are those that the CPU finds.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/ops.h"
#include "support/devices/interpreted_device.h"

namespace prism {
namespace {

constexpr int64_t kRows = 16411;  // the filter begins at 16,384

struct Given {
  Metric metric = Metric::dot;
  DType type = DType::f16, query_type = DType::f32;
  int64_t queries = 5, width = 24, k = 10;
  bool allowed = false;
};

// Changes rows before they are stored: row, its first element.
using Change = std::function<void(int64_t, float*)>;

void expect_equal_rows(const Given& given, const Change& change = {}) {
  const Device cpu = Device::cpu(), device = test::interpreted_device(8);
  std::vector<float> values = randn({kRows, given.width}, DType::f32, cpu).to_vector<float>();
  for (int64_t row = 0; change && row < kRows; ++row)
    change(row, values.data() + row * given.width);
  const Tensor matrix = cast(from_vector(values, {kRows, given.width}, cpu), given.type);
  const Tensor queries =
      cast(randn({given.queries, given.width}, DType::f32, cpu) * 100, given.query_type);
  NearestInputs here, there;
  if (given.allowed) {
    std::vector<int32_t> words((kRows + 31) / 32);
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = static_cast<int32_t>(0x0f0f3355u * (i + 1));
    here.allowed = from_vector(words, {static_cast<int64_t>(words.size())}, cpu);
    there.allowed = here.allowed.to(device);
  }
  const Nearest wanted = nearest_rows(given.metric, queries, matrix, given.k, here);
  const Nearest found =
      nearest_rows(given.metric, queries.to(device), matrix.to(device), given.k, there);
  EXPECT_EQ(found.indices.to_vector<int32_t>(), wanted.indices.to_vector<int32_t>());
  const std::vector<float> scores = found.scores.to_vector<float>(),
                           right = wanted.scores.to_vector<float>();
  for (size_t i = 0; i < right.size(); ++i)
    EXPECT_NEAR(scores[i], right[i], 1e-5f * std::abs(right[i]) + 1e-6f) << i;
}

TEST(NearestFilter, QueriesAsSumsOfParts) {
  expect_equal_rows({});
  expect_equal_rows({.type = DType::bf16, .width = 40, .k = 33});
}

TEST(NearestFilter, QueriesOfTheRowsType) {
  expect_equal_rows({.query_type = DType::f16, .queries = 2});
  expect_equal_rows({.metric = Metric::cosine, .query_type = DType::f16, .queries = 70});
  expect_equal_rows({.query_type = DType::f16, .queries = 70, .allowed = true});
}

TEST(NearestFilter, RowsThatAreNotAllowedOrNotNumbers) {
  expect_equal_rows({.metric = Metric::cosine, .queries = 18, .allowed = true},
                    [](int64_t row, float* values) {
                      if (row % 5 == 0) values[3] = std::numeric_limits<float>::quiet_NaN();
                      if (row % 7 == 0) std::fill(values, values + 24, 0.0f);
                    });
}

// Every eighth row is sampled. Where these are the worst, nearly all others reach the limit, and
// there is no room for them.
TEST(NearestFilter, MoreCandidatesThanRoom) {
  for (const int64_t queries : {6, 66})
    expect_equal_rows({.queries = queries}, [](int64_t row, float* values) {
      if (row % 8 == 0) std::fill(values, values + 24, 0.0f);
    });
}

// All rows near the queries are in a few tiles: more than their groups keep.
TEST(NearestFilter, CandidatesInOneTile) {
  for (const int64_t queries : {3, 66})
    expect_equal_rows({.query_type = DType::f16, .queries = queries},
                      [](int64_t row, float* values) {
                        if (row < 900 || row >= 1100)
                          for (int64_t i = 0; i < 24; ++i) values[i] *= 0.01f;
                      });
}

}  // namespace
}  // namespace prism
