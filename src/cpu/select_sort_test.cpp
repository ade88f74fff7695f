// Sorted rows with ties, NaN, zeros of both signs and extremes, against std::stable_sort.
#include "cpu/select_sort.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/simd_targets.h"
#include "prism/error.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

template <class T>
std::vector<size_t> order_of(const std::vector<T>& x, bool descending) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto less = [](T a, T b) {
    if (is_nan(a) || is_nan(b)) return !is_nan(a) && is_nan(b);
    return a < b;
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return descending ? less(x[j], x[i]) : less(x[i], x[j]);
  });
  return order;
}

template <class T>
std::vector<T> random_row(std::mt19937_64& random, size_t n, bool many_ties) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> x(n);
  for (T& v : x) {
    if (many_ties)
      v = static_cast<T>(static_cast<int>(random() % 7) - 3);
    else if constexpr (std::is_floating_point_v<T>)
      v = static_cast<T>(std::normal_distribution<double>()(random));
    else
      v = static_cast<T>(random());
    if (random() % 16 == 0) {
      const T special[] = {Limits::max(),
                           Limits::lowest(),
                           T(0),
                           static_cast<T>(-T(0)),
                           Limits::has_infinity ? Limits::infinity() : T(1),
                           Limits::has_infinity ? -Limits::infinity() : T(-1),
                           Limits::has_quiet_NaN ? Limits::quiet_NaN() : T(2)};
      v = special[random() % 7];
    }
  }
  return x;
}

template <class T, class Index>
void check(std::mt19937_64& random) {
  for (size_t n : {0, 1, 2, 17, 300, 511, 512, 5003})
    for (bool ties : {false, true})
      for (bool down : {false, true}) {
        const std::vector<T> x = random_row<T>(random, n, ties);
        const std::vector<size_t> order = order_of(x, down);
        const auto expect_first = [&](const std::vector<T>& values,
                                      const std::vector<Index>& indices, size_t k) {
          for (size_t i = 0; i < k; ++i) {
            ASSERT_EQ(static_cast<size_t>(indices[i]), order[i]) << n << " " << k << " at " << i;
            ASSERT_EQ(std::memcmp(&values[i], &x[order[i]], sizeof(T)), 0);
          }
        };
        std::vector<T> values = x;
        std::vector<Index> indices(n, Index(-1));
        sort(values.data(), n, down, values.data(), indices.data());  // in place
        expect_first(values, indices, n);
        for (size_t k : {size_t{0}, size_t{1}, size_t{5}, n / 20, n / 3, n}) {
          if (k > n) continue;
          values.assign(n, T(77));
          indices.assign(n, Index(-1));
          top_k(x.data(), n, k, down, values.data(), indices.data());
          expect_first(values, indices, k);
          if (k < n) {
            ASSERT_EQ(indices[k], Index(-1));
          }
        }
      }
}

TEST(SelectSort, AgreesWithAStableSort) {
  const uint64_t seed = test_seed();
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    check<float, int32_t>(random);
    check<float, int64_t>(random);
  }
  check<double, int64_t>(random);
  check<int32_t, int32_t>(random);
  check<int64_t, int64_t>(random);
}

TEST(SelectSort, OneOutputMayBeLeftOut) {
  const std::vector<float> x = {3, 1, 2};
  std::vector<int32_t> indices(3);
  std::vector<float> values(3);
  sort<float, int32_t>(x.data(), 3, true, nullptr, indices.data());
  EXPECT_EQ(indices, (std::vector<int32_t>{0, 2, 1}));
  top_k<float, int32_t>(x.data(), 3, 2, false, values.data(), nullptr);
  EXPECT_EQ(values, (std::vector<float>{1, 2, 0}));
  EXPECT_THROW((top_k<float, int32_t>(x.data(), 3, 4, true, values.data(), nullptr)), Error);
}

}  // namespace
}  // namespace prism::cpu
