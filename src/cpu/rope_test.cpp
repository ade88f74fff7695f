// Both pairings, partial heads and large positions against float64.
#include "cpu/rope.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/simd_targets.h"
#include "prism/rope_scaling.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

TEST(Rope, AgreesWithFloat64) {
  const uint32_t seed = test_seed();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  ThreadPool pool(3);
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    for (RopePairing pairing : {RopePairing::adjacent, RopePairing::halves})
      for (size_t dims : {2u, 6u, 64u, 96u})
        for (size_t rows : {0u, 1u, 37u}) {
          Rope options{.rows = rows,
                       .heads = 5,
                       .row_stride = 5 * 101 + 3,
                       .head_stride = 101,
                       .dims = dims,
                       .pairing = pairing,
                       .magnitude = 1.25f};
          const auto table = rope_frequencies(static_cast<uint32_t>(dims), 10000);
          std::vector<int32_t> positions(rows);
          for (int32_t& p : positions) p = static_cast<int32_t>(random() % 200000);
          std::vector<float> x(rows * options.row_stride);
          for (float& v : x) v = normal(random);
          const std::vector<float> before = x;
          rope(pool, options, positions.data(), table.frequencies.data(), x.data());
          std::vector<double> wanted(before.begin(), before.end());
          for (size_t row = 0; row < rows; ++row)
            for (size_t head = 0; head < options.heads; ++head)
              for (size_t i = 0; i < dims / 2; ++i) {
                const size_t at = row * options.row_stride + head * options.head_stride;
                const bool halves = pairing == RopePairing::halves;
                const size_t p = at + (halves ? i : 2 * i);
                const size_t q = at + (halves ? i + dims / 2 : 2 * i + 1);
                const double angle = positions[row] * static_cast<double>(table.frequencies[i]);
                const double c = 1.25 * std::cos(angle), s = 1.25 * std::sin(angle);
                wanted[p] = before[p] * c - before[q] * s;
                wanted[q] = before[q] * c + before[p] * s;
              }
          for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], wanted[i], 4e-6) << i;
          options.backward = true;
          options.magnitude = 0.8f;
          rope(pool, options, positions.data(), table.frequencies.data(), x.data());
          for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], before[i], 4e-6) << i;
        }
  }
}

}  // namespace
}  // namespace prism::cpu
