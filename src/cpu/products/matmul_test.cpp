// Products of all forms and awkward sizes against float64, on every instruction set.
#include "cpu/products/matmul.h"

#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/elementwise.h"
#include "cpu/simd_targets.h"
#include "prism/error.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

uint32_t fresh_seed() {
  const uint32_t seed = test_seed();
  std::printf("seed %u\n", seed);
  return seed;
}

// A stored matrix of `type` and its values in f64.
struct Matrix {
  size_t rows, columns, stride;
  std::vector<double> values;  // [rows][columns]
  std::vector<uint8_t> bytes;
};

Matrix random_matrix(std::mt19937& random, size_t rows, size_t columns, DType type) {
  Matrix x{rows, columns, columns + random() % 5, {}, {}};
  std::normal_distribution<float> normal;
  std::vector<float> stored(rows * x.stride);
  for (float& v : stored) v = normal(random);
  x.bytes.resize(stored.size() * dtype_bytes(type) + 1);
  store(DType::f32, stored.data(), type, x.bytes.data(), stored.size());
  std::vector<double> back(stored.size());
  load(type, x.bytes.data(), 1, DType::f64, back.data(), back.size());
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j) x.values.push_back(back[i * x.stride + j]);
  return x;
}

double at(const Matrix& x, bool transposed, size_t i, size_t j) {
  return transposed ? x.values[j * x.columns + i] : x.values[i * x.columns + j];
}

template <class T>
void check(ThreadPool& pool, std::mt19937& random, size_t m, size_t n, size_t k, DType a_type,
           DType b_type, bool ta, bool tb, double beta) {
  SCOPED_TRACE(testing::Message() << m << "x" << n << "x" << k << " " << dtype_name(a_type) << " "
                                  << dtype_name(b_type) << " " << ta << tb << " beta " << beta);
  const Matrix a = ta ? random_matrix(random, k, m, a_type) : random_matrix(random, m, k, a_type);
  const Matrix b = tb ? random_matrix(random, n, k, b_type) : random_matrix(random, k, n, b_type);
  const size_t ldc = n + random() % 3;
  // With beta 0, the previous content must not matter.
  std::vector<T> c(m * ldc + 1, beta == 0 ? std::numeric_limits<T>::quiet_NaN() : T(0.5));
  if constexpr (std::is_same_v<T, double>) {
    matmul_f64(pool, m, n, k, reinterpret_cast<const double*>(a.bytes.data()), a.stride, ta,
               reinterpret_cast<const double*>(b.bytes.data()), b.stride, tb, c.data(), ldc, beta);
  } else {
    matmul(pool, m, n, k, a_type, a.bytes.data(), a.stride, ta, b_type, b.bytes.data(), b.stride,
           tb, c.data(), ldc, static_cast<float>(beta));
  }
  const double unit = std::numeric_limits<T>::epsilon();
  double error = 0, power = 0;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double wanted = beta * 0.5, absolute = 1e-30;
      for (size_t l = 0; l < k; ++l) {
        const double term = at(a, ta, i, l) * at(b, tb, l, j);
        wanted += term;
        absolute += std::abs(term);
      }
      const double difference = static_cast<double>(c[i * ldc + j]) - wanted;
      ASSERT_LE(std::abs(difference),
                unit * (4 + std::sqrt(static_cast<double>(k))) * (absolute + std::abs(beta)))
          << i << ", " << j;
      error += difference * difference;
      power += wanted * wanted;
    }
    for (size_t j = n; j < ldc; ++j) {
      ASSERT_TRUE(beta == 0 ? std::isnan(c[i * ldc + j]) : c[i * ldc + j] == T(0.5));
    }
  }
  // Single elements may cancel to nearly 0.
  if (m * n > 100) {
    ASSERT_LE(error, 100 * unit * unit * power * (1 + k / 100.0));
  }
}

TEST(Matmul, AllFormsAndAwkwardSizes) {
  std::mt19937 random(fresh_seed());
  ThreadPool one(1), three(3);
  const size_t sizes[][3] = {{1, 1, 1},     {2, 3, 5},    {1, 37, 129}, {37, 1, 129},
                             {7, 33, 1},    {14, 32, 16}, {15, 31, 17}, {29, 67, 385},
                             {58, 259, 71}, {5, 300, 401}};
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    SCOPED_TRACE(simd_target_name(target));
    for (const auto& [m, n, k] : sizes)
      for (bool ta : {false, true})
        for (bool tb : {false, true}) {
          const double beta = random() % 2 ? 0.0 : 1.5;
          ThreadPool& pool = random() % 2 ? one : three;
          check<float>(pool, random, m, n, k, DType::f32, DType::f32, ta, tb, beta);
          check<double>(pool, random, m, n, k, DType::f64, DType::f64, ta, tb, beta);
          check<float>(pool, random, m, n, k, DType::f32, DType::f16, ta, tb, beta);
          check<float>(pool, random, m, n, k, DType::bf16, DType::f32, ta, tb, beta);
          if (HasFatalFailure()) return;
        }
  }
}

TEST(Matmul, ManyTilesOnThreads) {
  std::mt19937 random(fresh_seed());
  ThreadPool pool(3);
  for (bool ta : {false, true})
    for (bool tb : {false, true}) {
      check<float>(pool, random, 131, 267, 397, DType::f32, DType::f32, ta, tb, 0);
      check<float>(pool, random, 1, 2011, 547, DType::f32, DType::f32, ta, tb, 0.5);
      check<float>(pool, random, 2011, 1, 547, DType::f16, DType::bf16, ta, tb, 0);
      if (HasFatalFailure()) return;
    }
}

// Every element of c is passed on once, when it has its final value.
TEST(Matmul, PassesOnWhatIsComplete) {
  std::mt19937 random(fresh_seed());
  ThreadPool pool(3);
  const size_t sizes[][3] = {{1, 5, 7},     {9, 1, 20},      {3, 50, 40},    {4, 6, 0},
                             {131, 75, 40}, {200, 600, 800}, {70, 130, 390}, {1, 40000, 3}};
  for (const auto& [m, n, k] : sizes)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        const Matrix a = random_matrix(random, ta ? k : m, ta ? m : k, DType::f32);
        const Matrix b = random_matrix(random, tb ? n : k, tb ? k : n, DType::f32);
        std::vector<float> c(m * n), seen(m * n);
        std::vector<int> times(m * n);
        const MatmulDone done = [&, columns_of_c = n](size_t row, size_t rows, size_t column,
                                                      size_t columns) {
          for (size_t i = row; i < row + rows; ++i)
            for (size_t j = column; j < column + columns; ++j) {
              ++times[i * columns_of_c + j];
              seen[i * columns_of_c + j] = c[i * columns_of_c + j];
            }
        };
        matmul(pool, m, n, k, DType::f32, a.bytes.data(), a.stride, ta, DType::f32, b.bytes.data(),
               b.stride, tb, c.data(), n, 0, &done);
        ASSERT_EQ(times, std::vector<int>(times.size(), 1)) << m << " " << n << " " << k;
        ASSERT_EQ(seen, c) << m << " " << n << " " << k;
      }
}

TEST(Matmul, NothingToMultiply) {
  ThreadPool pool(1);
  std::vector<float> c(6, 2.0f);
  matmul_f32(pool, 2, 3, 0, nullptr, 0, false, nullptr, 3, false, c.data(), 3, 0.5f);
  EXPECT_EQ(c, std::vector<float>(6, 1.0f));
  matmul_f32(pool, 2, 3, 0, nullptr, 0, false, nullptr, 3, false, c.data(), 3);
  EXPECT_EQ(c, std::vector<float>(6, 0.0f));
  matmul_f32(pool, 0, 3, 4, nullptr, 4, false, c.data(), 3, false, c.data(), 3);
  EXPECT_THROW(matmul(pool, 1, 1, 1, DType::i8, c.data(), 1, false, DType::f32, c.data(), 1, false,
                      c.data(), 1),
               Error);
}

}  // namespace
}  // namespace prism::cpu
