// Tests nearest_rows for one query, which looks for blocks of rows, on the interpreter: the rows it
// finds are those that the CPU finds.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/ops.h"
#include "support/devices/interpreted_device.h"

namespace prism {
namespace {

struct Given {
  Metric metric = Metric::dot;
  DType type = DType::f16;
  int64_t rows = 16411, width = 24, k = 10;
  bool factors = false;
  double size = 1;                       // of the query
  std::optional<uint32_t> allowed = {};  // bits of every word, changed a little from word to word
};

// Changes rows before they are stored: row, its first element.
using Change = std::function<void(int64_t, float*)>;

Tensor draw(const Given& given, int64_t rows, const Change& change) {
  const Tensor random = rand({rows, given.width}, DType::f32, Device::cpu());
  std::vector<float> values = random.to_vector<float>();
  for (float& value : values) {
    if (given.metric == Metric::hamming)
      value = std::floor(value * 256);
    else if (given.type == DType::i8)
      value = std::floor(value * 255) - 127;
    else
      value = value * 2 - 1;
  }
  for (int64_t row = 0; change && row < rows; ++row) change(row, values.data() + row * given.width);
  return from_vector(values, {rows, given.width}, Device::cpu());
}

void expect_equal_rows(const Given& given, const Change& change = {}) {
  const Device cpu = Device::cpu(), device = test::interpreted_device(8);
  const bool bits = given.metric == Metric::hamming;
  const Tensor matrix = cast(draw(given, given.rows, change), bits ? DType::u8 : given.type);
  Tensor query = cast(draw(given, 1, {}), bits ? DType::u8 : DType::f32);
  if (!bits) query = query * given.size + given.size / 3;
  NearestInputs here, there;
  if (given.factors) {
    Tensor& factors = given.metric == Metric::cosine ? here.norms : here.scales;
    factors = given.metric == Metric::cosine ? row_norms(matrix)
                                             : rand({given.rows}, DType::f32, cpu) + 0.5;
    there.norms = here.norms ? here.norms.to(device) : Tensor();
    there.scales = here.scales ? here.scales.to(device) : Tensor();
  }
  if (given.allowed) {
    std::vector<int32_t> words(static_cast<size_t>((given.rows + 31) / 32));
    for (size_t i = 0; i < words.size(); ++i)
      words[i] = static_cast<int32_t>(*given.allowed * (i % 7 + 1));
    here.allowed = from_vector(words, {static_cast<int64_t>(words.size())}, cpu);
    there.allowed = here.allowed.to(device);
  }
  const Nearest wanted = nearest_rows(given.metric, query, matrix, given.k, here);
  const Nearest found =
      nearest_rows(given.metric, query.to(device), matrix.to(device), given.k, there);
  EXPECT_EQ(found.indices.to_vector<int32_t>(), wanted.indices.to_vector<int32_t>());
  const std::vector<float> scores = found.scores.to_vector<float>(),
                           right = wanted.scores.to_vector<float>();
  for (size_t i = 0; i < right.size(); ++i)
    EXPECT_TRUE(scores[i] == right[i] ||
                std::abs(scores[i] - right[i]) <= 1e-5f * std::abs(right[i]) + 1e-6f)
        << scores[i] << " and " << right[i] << " at " << i;
}

// Rows of 3 units in 8 lanes, of 10 in 16, of 16 in 16, of 96 in 32.
TEST(NearestBlocks, FindsTheRowsOfTheCpu) {
  expect_equal_rows({});
  expect_equal_rows({.metric = Metric::l2, .type = DType::f32, .width = 40, .k = 25});
  expect_equal_rows({.metric = Metric::cosine, .type = DType::bf16, .width = 128});
  expect_equal_rows({.rows = 4099, .width = 768});
}

TEST(NearestBlocks, ManyNeighbours) {
  expect_equal_rows({.type = DType::f32, .rows = 5600, .width = 768, .k = 300});
  // More candidates than the registers of a group hold.
  expect_equal_rows({.rows = 46003, .k = 150});
}

TEST(NearestBlocks, ScaledRows) {
  for (const Metric metric : {Metric::dot, Metric::l2, Metric::cosine})
    for (const int64_t width : {48, 768})
      expect_equal_rows({.metric = metric,
                         .type = DType::i8,
                         .rows = width == 48 ? 16411 : 4099,
                         .width = width,
                         .factors = true,
                         .allowed = 0x5a3c71ffu});
}

TEST(NearestBlocks, SizesOfQueries) {
  for (const double size : {1e-20, 1e-3, 1e20})
    expect_equal_rows({.type = DType::i8, .width = 48, .size = size});
}

// Many rows have the same distance, and the smaller row number decides.
TEST(NearestBlocks, Ties) {
  expect_equal_rows({.metric = Metric::hamming, .type = DType::u8, .width = 16, .k = 40});
  expect_equal_rows({.k = 60},
                    [](int64_t, float* values) { std::fill(values, values + 24, 1.0f); });
}

TEST(NearestBlocks, RowsThatAreNotAllowedOrNotNumbers) {
  const auto change = [](int64_t row, float* values) {
    if (row % 5 == 0) values[3] = std::numeric_limits<float>::quiet_NaN();
    if (row % 7 == 0) std::fill(values, values + 24, 0.0f);
  };
  for (const Metric metric : {Metric::dot, Metric::l2, Metric::cosine})
    expect_equal_rows({.metric = metric, .allowed = 0x0f0f3355u}, change);
  expect_equal_rows({.allowed = 0u});
  // Fewer than k rows.
  expect_equal_rows({.k = 60}, [](int64_t row, float* values) {
    if (row % 400 != 399) values[3] = std::numeric_limits<float>::quiet_NaN();
  });
}

TEST(NearestBlocks, ZeroQueryHasNoCosine) {
  const Device device = test::interpreted_device(8);
  const Tensor matrix = randn({16411, 24}, DType::f32, device);
  const Nearest found = cosine_top_k(zeros({24}, DType::f32, device), matrix, 3);
  EXPECT_EQ(found.indices.to_vector<int32_t>(), (std::vector<int32_t>{-1, -1, -1}));
}

}  // namespace
}  // namespace prism
