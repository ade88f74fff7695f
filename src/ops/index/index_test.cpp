// Tests of index and creation ops: error messages, out-of-range indices, random numbers.
#include "prism/ops/index.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/join.h"
#include "prism/ops/rope.h"

namespace prism {
namespace {

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "nothing was thrown";
}

Tensor indices_of(const std::vector<int32_t>& values) {
  return from_vector(values, {static_cast<int64_t>(values.size())}, Device::cpu());
}

TEST(Index, NamesTheIndexThatIsOutside) {
  const Tensor table = zeros({10, 3}, DType::f32, Device::cpu());
  EXPECT_EQ(message_of([&] {
              gather_rows(table, indices_of({1, 2, 10})).eval();
            }),
            "gather_rows: index 10 (number 2 of 3) is outside 0 to 9");
  EXPECT_EQ(message_of([&] { gather_rows(table, indices_of({-1})).eval(); }),
            "gather_rows: index -1 (number 0 of 1) is outside 0 to 9");
  const Tensor rows = zeros({1, 3}, DType::f32, Device::cpu());
  EXPECT_EQ(message_of([&] { scatter_rows(table, indices_of({11}), rows).eval(); }),
            "scatter_rows: index 11 (number 0 of 1) is outside 0 to 9");
  EXPECT_EQ(message_of([&] { scatter_add_rows(table, indices_of({11}), rows).eval(); }),
            "scatter_add_rows: index 11 (number 0 of 1) is outside 0 to 9");
}

TEST(Index, NamesTheShapes) {
  const Tensor table = zeros({10, 3}, DType::f32, Device::cpu());
  const Tensor rows = zeros({2, 4}, DType::f32, Device::cpu());
  EXPECT_EQ(message_of([&] {
              scatter_rows(table, indices_of({1, 2}), rows);
            }),
            "scatter_rows: rows [2, 4] for base [10, 3] and indices [2]; they must be [2, 3]");
  EXPECT_EQ(message_of([&] { gather_rows(table, table); }),
            "gather_rows: indices of type f32; they must be i32 or i64");
  EXPECT_EQ(message_of([&] {
              concat({table, rows}, 0);
            }),
            "concat: [10, 3] and [2, 4] along axis 0; all other axes must be equal");
  EXPECT_EQ(message_of([&] { rope(table, indices_of({}), rows); }),
            "rope: 3 dims of heads of 3; both must be even, dims at most the head");
}

TEST(Index, LastOfEqualIndicesIsKeptOnTheCpu) {
  const Tensor base = zeros({3}, DType::f32, Device::cpu());
  const Tensor rows = from_vector<float>({1, 2, 3}, {3}, Device::cpu());
  EXPECT_EQ(scatter_rows(base, indices_of({1, 0, 1}), rows).to_vector<float>(),
            (std::vector<float>{2, 3, 0}));
}

TEST(Create, UniformStaysBelowItsHighEnd) {
  const auto values = uniform({100000}, 7, 0.999999, 1.0, DType::f32, Device::cpu());
  for (const float value : values.to_vector<float>()) ASSERT_LT(value, 1.0f);
}

TEST(Create, NormalHasItsMoments) {
  const auto values = normal({200000}, 11, 3, 2, DType::f32, Device::cpu()).to_doubles();
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  // Six standard deviations of each estimate.
  EXPECT_NEAR(mean, 3, 6 * 2 / std::sqrt(200000.0));
  EXPECT_NEAR(squares / static_cast<double>(values.size()), 4, 6 * 4 * std::sqrt(2 / 200000.0));
}

}  // namespace
}  // namespace prism
