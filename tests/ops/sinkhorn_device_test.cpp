// Compares sinkhorn with float64 on every device found, and checks rejected inputs.
#include "ops/rows/sinkhorn.h"

#include <cmath>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "support/devices/devices.h"
#include "support/seed.h"

namespace prism {
namespace {

std::vector<double> reference(std::vector<double> x, size_t n, int64_t steps, double epsilon) {
  for (size_t first = 0; first < x.size(); first += n * n) {
    const auto at = [&](size_t row, size_t column) -> double& {
      return x[first + row * n + column];
    };
    for (size_t row = 0; row < n; ++row) {
      double sum = 0;
      for (size_t i = 0; i < n; ++i) sum += std::exp(at(row, i));
      for (size_t i = 0; i < n; ++i) at(row, i) = std::exp(at(row, i)) / sum + epsilon;
    }
    for (int64_t step = 0; step < steps; ++step)
      for (const bool by_rows : {true, false}) {
        if (by_rows && step == 0) continue;
        for (size_t i = 0; i < n; ++i) {
          double sum = epsilon;
          for (size_t k = 0; k < n; ++k) sum += by_rows ? at(i, k) : at(k, i);
          for (size_t k = 0; k < n; ++k) (by_rows ? at(i, k) : at(k, i)) /= sum;
        }
      }
  }
  return x;
}

TEST(SinkhornDevice, BalancesRowsAndColumns) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal(0, 2);
  for (const Device& device : test::every_device())
    for (const auto& [count, n, steps] :
         std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {67, 4, 20}, {5, 3, 2}, {130, 8, 1}}) {
      constexpr double kEpsilon = 1e-3;  // large enough to change the result
      std::vector<double> logits(static_cast<size_t>(count * n * n));
      for (double& each : logits) each = static_cast<double>(static_cast<float>(normal(engine)));
      const std::vector<double> wanted = reference(logits, static_cast<size_t>(n), steps, kEpsilon);
      const std::vector<double> found =
          sinkhorn(from_doubles(logits, {count, n, n}, DType::f32, device), steps, kEpsilon)
              .to_doubles();
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_NEAR(found[i], wanted[i], 1e-5) << device.id() << " n " << n << " element " << i;
    }
}

TEST(SinkhornDevice, TakesNoMatrices) {
  for (const Device& device : test::every_device())
    EXPECT_EQ(sinkhorn(zeros({0, 4, 4}, DType::f32, device), 3, 0).eval().elements(), 0);
}

TEST(SinkhornDevice, MistakesAreErrors) {
  EXPECT_THROW(sinkhorn(Tensor(), 1, 0), Error);
  EXPECT_THROW(sinkhorn(zeros({2, 3}), 1, 0), Error) << "not square";
  EXPECT_THROW(sinkhorn(zeros({9, 9}), 1, 0), Error) << "too large";
  EXPECT_THROW(sinkhorn(zeros({3, 3}, DType::f16), 1, 0), Error);
  EXPECT_THROW(sinkhorn(zeros({3, 3}), 0, 0), Error) << "no steps";
}

}  // namespace
}  // namespace prism
