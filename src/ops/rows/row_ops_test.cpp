// Errors of row ops, and the fusion of chains into them.
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/norm.h"
#include "prism/ops/reduce.h"
#include "prism/ops/scan.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"
#include "support/seed.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

Tensor some(const Shape& shape, DType type = DType::f32) {
  return zeros(shape, type, Device::cpu()).eval();
}

template <class Function>
std::string refusal(Function&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "nothing thrown";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(RowOps, RefusalsNameOpAndShapes) {
  EXPECT_PRED2(has, refusal([] { max(some({3, 0}), {1}); }), "max: of [3, 0] along axis 1");
  EXPECT_PRED2(has, refusal([] { argmin(some({0}), 0); }), "argmin: of [0]");
  EXPECT_PRED2(has, refusal([] { sum(some({3, 4}), {1, -1}); }), "axis 1 of [3, 4] named twice");
  EXPECT_PRED2(has, refusal([] { sum(some({3}), {2}); }), "sum");
  EXPECT_PRED2(has, refusal([] { mean(some({3}, DType::i32)); }), "mean: elements of type i32");
  EXPECT_PRED2(has, refusal([] { sum_to(some({4, 3}), {2}); }), "[2] does not broadcast to [4, 3]");
  EXPECT_PRED2(has, refusal([] { softmax(some({3}, DType::i32)); }), "softmax: elements of type");
  EXPECT_PRED2(has, refusal([] {
                 cross_entropy(some({4, 3}), some({5}, DType::i32));
               }),
               "logits [4, 3] and targets [5]");
  EXPECT_PRED2(has, refusal([] {
                 rms_norm(some({2, 8}), some({7}));
               }),
               "rms_norm: weight has shape [7], x has rows of 8");
  EXPECT_PRED2(has, refusal([] {
                 top_k(some({2, 3}), 4);
               }),
               "top_k: 4 elements of [2, 3] along axis 1, which has 3");
  EXPECT_PRED2(has, refusal([] { cumsum(some({2}), 3); }), "cumsum");
}

size_t steps_of(const Tensor& result) {
  const Tensor outputs[] = {result};
  return Plan(outputs).steps().size();
}

TEST(RowOps, ChainsBeforeAnOpRunInItsLoads) {
  const Tensor x = some({4, 16}), bias = some({16}), row = some({4, 1});
  EXPECT_EQ(steps_of(sum(square(x - row) * 2.0 + bias, {1})), 1u);
  EXPECT_EQ(steps_of(softmax(x * 0.5 + bias)), 1u);
  EXPECT_EQ(steps_of(rms_norm(x + x, bias)), 1u);
  EXPECT_EQ(steps_of(cumsum(x * 3.0)), 1u);
  EXPECT_EQ(steps_of(variance(x, {1})), 2u + 1u);  // mean, sum of squares, division
}

// Rows of more elements than a piece of a chain, and columns, of operands with several layouts.
TEST(RowOps, ChainsGiveTheValuesOfTheirSteps) {
  const int64_t rows = 3, width = 2600;
  const auto drawn = [&](int64_t n) {
    std::mt19937 random(test_seed());
    std::vector<float> values(static_cast<size_t>(n));
    for (float& each : values) each = static_cast<float>(static_cast<int>(random() % 17) - 8);
    return values;
  };
  const std::vector<float> a = drawn(rows * width), b = drawn(rows * width), c = drawn(rows);
  const Tensor x = from_vector(a, {rows, width}, Device::cpu());
  const Tensor y = from_vector(b, {width, rows}, Device::cpu()).transpose();
  const Tensor row = from_vector(c, {rows, 1}, Device::cpu());
  const auto term = [&](int64_t i, int64_t j) {
    const float u = a[static_cast<size_t>(i * width + j)], v = b[static_cast<size_t>(j * rows + i)];
    return u > v ? u * 3.0f : v + c[static_cast<size_t>(i)];
  };
  std::vector<double> along(rows), across(width);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < width; ++j) {
      along[static_cast<size_t>(i)] += static_cast<double>(term(i, j));
      across[static_cast<size_t>(j)] += static_cast<double>(term(i, j));
    }
  EXPECT_EQ(sum(where(x > y, x * 3.0, y + row), {1}).to_doubles(), along);
  EXPECT_EQ(sum(where(x > y, x * 3.0, y + row), {0}).to_doubles(), across);
}

TEST(RowOps, SumsOfNothing) {
  EXPECT_EQ(sum(some({3, 0}), {1}).to_doubles(), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(all(some({0})).item(), 1);
  EXPECT_EQ(any(some({0})).item(), 0);
}

}  // namespace
}  // namespace prism
