// Row functions on every instruction set of this machine against float64.
#include "cpu/rows.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/simd_targets.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kLengths[] = {1, 2, 3, 7, 15, 16, 17, 31, 64, 67, 255, 1009, 4099, 9001};

uint32_t fresh_seed() {
  const uint32_t seed = test_seed();
  std::printf("seed %u\n", seed);
  return seed;
}

template <class T>
std::vector<T> normal_values(std::mt19937& random, size_t n, double mean, double deviation) {
  std::normal_distribution<double> distribution(mean, deviation);
  std::vector<T> x(n);
  for (T& v : x) v = static_cast<T>(distribution(random));
  return x;
}

// Compares each element, and the row as a whole.
template <class T>
void expect_row(const std::vector<T>& got, const std::vector<long double>& wanted, double tolerance,
                const char* what) {
  long double error = 0, power = 0, largest = 0;
  for (long double w : wanted) largest = std::max(largest, std::abs(w));
  for (size_t i = 0; i < wanted.size(); ++i) {
    const long double difference = static_cast<long double>(got[i]) - wanted[i];
    ASSERT_LE(std::abs(difference), tolerance * largest) << what << " at " << i;
    error += difference * difference;
    power += wanted[i] * wanted[i];
  }
  ASSERT_LE(error, tolerance * tolerance * power) << what;
}

template <class T>
void check_rows(std::mt19937& random, double tolerance) {
  for (size_t n : kLengths)
    for (double mean : {0.0, 100.0}) {
      const std::vector<T> x = normal_values<T>(random, n, mean, 2.0);
      const std::vector<T> w = normal_values<T>(random, n, 1.0, 0.5);
      const std::vector<T> b = normal_values<T>(random, n, 0.0, 1.0);
      std::vector<long double> wanted(n);
      std::vector<T> out(n, static_cast<T>(kNaN));
      long double sum = 0, absolute = 0, squares = 0, dot = 0, dot_absolute = 0;
      for (size_t i = 0; i < n; ++i) {
        const long double v = x[i];
        sum += v;
        absolute += std::abs(v);
        squares += v * v;
        dot += v * w[i];
        dot_absolute += std::abs(v * w[i]);
      }
      const long double average = sum / n;
      long double spread = 0;
      for (T v : x) spread += (v - average) * (v - average);
      ASSERT_NEAR(row_sum(x.data(), n), static_cast<double>(sum), 1e-14 * absolute);
      ASSERT_NEAR(row_dot(x.data(), w.data(), n), static_cast<double>(dot),
                  4 * tolerance * static_cast<double>(dot_absolute));
      const Moments moments = row_moments(x.data(), n);
      ASSERT_NEAR(moments.mean, static_cast<double>(average), 1e-13 * absolute / n);
      ASSERT_NEAR(moments.variance, static_cast<double>(spread / n), 1e-10 * (1 + spread / n));
      if (n > 1) {
        ASSERT_NEAR(row_moments(x.data(), n, 1).variance, static_cast<double>(spread / (n - 1)),
                    1e-10 * (1 + spread / n));
      }
      const size_t largest = std::max_element(x.begin(), x.end()) - x.begin();
      const size_t least = std::min_element(x.begin(), x.end()) - x.begin();
      ASSERT_EQ(row_max(x.data(), n), x[largest]);
      ASSERT_EQ(row_min(x.data(), n), x[least]);
      ASSERT_EQ(row_argmax(x.data(), n), largest);
      ASSERT_EQ(row_argmin(x.data(), n), least);

      long double running = 0;
      for (size_t i = 0; i < n; ++i) wanted[i] = running += x[i];
      row_cumsum(x.data(), out.data(), n);
      expect_row(out, wanted, tolerance, "cumsum");

      long double total = 0;
      for (size_t i = 0; i < n; ++i)
        total += wanted[i] = std::exp(static_cast<long double>(x[i]) - x[largest]);
      for (long double& v : wanted) v /= total;
      row_softmax(x.data(), out.data(), n);
      expect_row(out, wanted, 4 * tolerance, "softmax");
      for (size_t i = 0; i < n; ++i)
        wanted[i] = static_cast<long double>(x[i]) - x[largest] - std::log(total);
      row_log_softmax(x.data(), out.data(), n);
      if (n > 1) expect_row(out, wanted, tolerance, "log_softmax");

      for (const T* weight : {static_cast<const T*>(nullptr), w.data()})
        for (const T* bias : {static_cast<const T*>(nullptr), b.data()}) {
          for (size_t i = 0; i < n; ++i)
            wanted[i] = (x[i] - average) / std::sqrt(spread / n + 1e-5L) * (weight ? w[i] : 1) +
                        (bias ? b[i] : 0);
          row_layer_norm(x.data(), weight, bias, 1e-5, out.data(), n);
          // The bias may cancel most of a short row.
          if (n > 1) expect_row(out, wanted, (n < 10 ? 50 : 5) * tolerance, "layer_norm");
        }
      for (const T* weight : {static_cast<const T*>(nullptr), w.data()}) {
        for (size_t i = 0; i < n; ++i)
          wanted[i] = x[i] / std::sqrt(squares / n + 1e-6L) * (weight ? w[i] : 1);
        out = x;  // in place
        row_rms_norm(out.data(), weight, 1e-6, out.data(), n);
        expect_row(out, wanted, 4 * tolerance, "rms_norm");
      }
    }
}

TEST(Rows, AgreeWithLongDoubleOnEveryInstructionSet) {
  std::mt19937 random(fresh_seed());
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    SCOPED_TRACE(simd_target_name(target));
    check_rows<float>(random, 2e-7);
    check_rows<double>(random, 1e-13);
  }
}

TEST(Rows, AMillionElementsKeepTheirSum) {
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    const std::vector<float> x(1000003, 0.1f);
    EXPECT_NEAR(row_sum(x.data(), x.size()), 1000003 * static_cast<double>(0.1f), 1e-6);
  }
}

TEST(Rows, NaNWinsAndTheFirstIndexCounts) {
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    for (size_t n : kLengths)
      for (size_t at : {size_t{0}, n / 2, n - 1}) {
        std::vector<float> x(n, 1.0f);
        EXPECT_EQ(row_argmax(x.data(), n), 0u);
        EXPECT_EQ(row_argmin(x.data(), n), 0u);
        x[at] = -kInfinity;
        EXPECT_EQ(row_argmin(x.data(), n), at);
        x[at] = kNaN;
        EXPECT_TRUE(std::isnan(row_max(x.data(), n)));
        EXPECT_TRUE(std::isnan(row_min(x.data(), n)));
        x[n - 1] = kNaN;
        EXPECT_EQ(row_argmax(x.data(), n), at);
        EXPECT_EQ(row_argmin(x.data(), n), at);
        const std::vector<double> wide(x.begin(), x.end());
        EXPECT_TRUE(std::isnan(row_max(wide.data(), n)));
        EXPECT_EQ(row_argmin(wide.data(), n), at);
      }
    EXPECT_EQ(row_max(static_cast<const float*>(nullptr), 0), -kInfinity);
    EXPECT_EQ(row_min(static_cast<const float*>(nullptr), 0), kInfinity);
  }
}

TEST(Rows, MaskedAndHugeElementsOfASoftmax) {
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    const std::vector<float> x = {-kInfinity, 3e38f, -kInfinity, 3e38f, -3e38f};
    std::vector<float> out(5, kNaN);
    row_softmax(x.data(), out.data(), 5);
    EXPECT_EQ(out, (std::vector<float>{0, 0.5f, 0, 0.5f, 0}));
    const std::vector<float> nothing(5, -kInfinity);
    row_softmax(nothing.data(), out.data(), 5);
    for (float v : out) EXPECT_TRUE(std::isnan(v));
  }
}

}  // namespace
}  // namespace prism::cpu
