// Quantised products against float64, with exact activations and with activations rounded as the
// kernels do; every block type, on every supported instruction set.
#include "cpu/products/quantised_product.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "base/types/block_factors.h"
#include "cpu/quantise/dequantise.h"
#include "prism/error.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

using Random = std::mt19937_64;

Random& random_numbers() {
  static Random random = [] {
    const uint64_t seed = test_seed();
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    return Random(seed);
  }();
  return random;
}

float normal() { return std::normal_distribution<float>()(random_numbers()); }
uint64_t below(uint64_t limit) { return random_numbers()() % limit; }

std::string name_of(BlockType type) { return block_info(type).name; }

std::vector<BlockType> all_types() {
  std::vector<BlockType> types;
  for (int i = 0; i < kBlockTypeCount; ++i) types.push_back(static_cast<BlockType>(i));
  return types;
}

// Blocks of random bytes that cover all codes, scales and mins, with sensible scale factors.
std::vector<uint8_t> random_blocks(BlockType type, uint64_t count) {
  const uint32_t bytes = block_info(type).bytes;
  std::vector<uint8_t> blocks(count * bytes);
  for (uint8_t& byte : blocks) byte = static_cast<uint8_t>(below(256));
  for (uint64_t b = 0; b < count; ++b)
    set_block_factors(type, &blocks[b * bytes], std::exp2(normal()) * (below(2) ? 1.0f : -1.0f));
  return blocks;
}

struct Weights {
  BlockType type;
  uint64_t rows, k;
  std::vector<uint8_t> blocks;
  std::vector<float> values;

  QuantisedWeights view() const { return {type, blocks.data(), rows, k}; }
};

Weights random_weights(BlockType type, uint64_t rows, uint64_t k) {
  Weights weights{type, rows, k, random_blocks(type, rows * k / block_info(type).elements), {}};
  weights.values.resize(rows * k);
  dequantise(type, weights.blocks.data(), weights.values.data(), rows * k);
  return weights;
}

// Results against float64 sums: the mean square error, and the worst error of one element relative
// to the summed magnitudes.
struct Comparison {
  double error = 0, power = 0, expected_power = 0, worst = 0;

  // squares: the sum of squared terms, which is the expected power for random signs. With few
  // results, all may be near zero by chance, so their own power is no reference.
  void add(double found, double wanted, double magnitude, double squares) {
    error += (found - wanted) * (found - wanted);
    power += wanted * wanted;
    expected_power += squares;
    if (!(std::abs(found - wanted) <= worst * magnitude))
      worst = magnitude > 0 ? std::abs(found - wanted) / magnitude
                            : std::numeric_limits<double>::infinity();
    if (std::isnan(found)) worst = error = std::numeric_limits<double>::infinity();
  }
  double nmse() const {
    const double normal = std::max(power, expected_power);
    return normal > 0 ? error / normal : error;
  }
};

void check(const Weights& w, const float* x, uint64_t x_rows, uint64_t x_stride,
           const QuantisedActivations& rounded, const float* y, uint64_t y_stride,
           const std::string& what) {
  Comparison plain, same;
  for (uint64_t i = 0; i < x_rows; ++i) {
    for (uint64_t r = 0; r < w.rows; ++r) {
      double exact = 0, exact_size = 0, exact_squares = 0;
      double with_rounding = 0, size = 0, squares = 0;
      for (uint64_t e = 0; e < w.k; ++e) {
        const double weight = w.values[r * w.k + e];
        const double value = static_cast<double>(rounded.values[i * w.k + e]) *
                             rounded.scales[(i * w.k + e) / rounded.scale_elements];
        const double term = weight * x[i * x_stride + e], rounded_term = weight * value;
        exact += term;
        exact_size += std::abs(term);
        exact_squares += term * term;
        with_rounding += rounded_term;
        size += std::abs(rounded_term);
        squares += rounded_term * rounded_term;
      }
      plain.add(y[i * y_stride + r], exact, exact_size, exact_squares);
      same.add(y[i * y_stride + r], with_rounding, size, squares);
    }
  }
  // With few results the mean square error varies by chance.
  EXPECT_LT(plain.nmse(), x_rows * w.rows >= 64 ? 5e-4 : 5e-3) << what;
  EXPECT_LT(same.nmse(), 1e-10) << what;
  // Bound per element: at most one f32 rounding per group relative to the summed magnitudes, times
  // a small factor because scales and offsets of opposite signs cancel.
  EXPECT_LT(same.worst, 4e-6) << what;
}

struct Case {
  uint64_t rows, blocks, x_rows, x_gap, y_gap;
};

void run_case(const QuantisedKernels& kernels, ThreadPool& pool, BlockType type, const Case& c) {
  const uint64_t k = c.blocks * block_info(type).elements;
  const Weights w = random_weights(type, c.rows, k);
  const uint64_t x_stride = k + c.x_gap, y_stride = c.rows + c.y_gap;
  std::vector<float> x(c.x_rows * x_stride, std::numeric_limits<float>::quiet_NaN());
  for (uint64_t i = 0; i < c.x_rows; ++i)
    for (uint64_t e = 0; e < k; ++e) x[i * x_stride + e] = normal();
  QuantisedActivations rounded;
  quantise_activations(pool, type, x.data(), c.x_rows, k, x_stride, rounded);
  std::vector<float> y(c.x_rows * y_stride + 1);
  std::memset(y.data(), 0xCD, y.size() * sizeof(float));
  quantised_product_with(kernels, pool, w.view(), rounded, y.data(), y_stride);
  const std::string what = std::string(kernels.name) + " " + name_of(type) + " " +
                           std::to_string(c.rows) + " x " + std::to_string(k) + ", " +
                           std::to_string(c.x_rows) + " activation rows";
  check(w, x.data(), c.x_rows, x_stride, rounded, y.data(), y_stride, what);
  uint32_t poison;
  std::memset(&poison, 0xCD, 4);
  for (uint64_t i = 0; i < y.size(); ++i) {
    if (i < c.x_rows * y_stride && i % y_stride < c.rows) continue;
    ASSERT_EQ(std::memcmp(&y[i], &poison, 4), 0) << what << " wrote between rows, at " << i;
  }
}

void for_each_supported(const std::function<void(const QuantisedKernels&)>& body) {
  int ran = 0;
  for (const QuantisedKernels* kernels : all_quantised_kernels()) {
    if (!kernels->supported()) continue;
    body(*kernels);
    ++ran;
  }
  EXPECT_GE(ran, 1);
}

TEST(QuantisedProduct, EveryTypeOnEveryInstructionSet) {
  ThreadPool pool(2);
  for_each_supported([&](const QuantisedKernels& kernels) {
    std::printf("%s\n", kernels.name);
    for (const BlockType type : all_types())
      for (const uint64_t x_rows : {1, 2, 3, 4, 5, 8, 33})
        for (const uint64_t blocks : {1, 3})
          run_case(kernels, pool, type, {1 + below(70), blocks, x_rows, below(5), below(4)});
  });
}

TEST(QuantisedProduct, EveryNumberOfWeightRows) {
  ThreadPool pool(2);
  for_each_supported([&](const QuantisedKernels& kernels) {
    for (uint64_t rows = 1; rows <= 70; ++rows) {
      const auto type = static_cast<BlockType>(below(kBlockTypeCount));
      run_case(kernels, pool, type, {rows, 1 + below(2), 1 + below(7), 3, 2});
      run_case(kernels, pool, type, {rows, 1 + below(9), 8 + below(20), 0, 0});
    }
  });
}

// Whole groups of eight blocks and every number of blocks behind them.
TEST(QuantisedProduct, EveryNumberOfBlocks) {
  ThreadPool pool(2);
  for_each_supported([&](const QuantisedKernels& kernels) {
    for (const BlockType type :
         {BlockType::q4_0, BlockType::q4_1, BlockType::q8_0, BlockType::iq4_nl, BlockType::mxfp4,
          BlockType::iq1_s, BlockType::iq2_s, BlockType::iq3_s, BlockType::tq1_0})
      for (uint64_t blocks = 1; blocks <= 20; ++blocks)
        run_case(kernels, pool, type, {1 + below(11), blocks, 1 + below(9), below(3), below(3)});
  });
}

// Kernels take one to four weight rows at once, fewer with more activation rows.
TEST(QuantisedProduct, BlocksOf256WithEveryNumberOfRows) {
  ThreadPool pool(2);
  for_each_supported([&](const QuantisedKernels& kernels) {
    for (const BlockType type :
         {BlockType::iq1_s, BlockType::iq1_m, BlockType::iq2_xxs, BlockType::iq2_xs,
          BlockType::iq2_s, BlockType::iq3_xxs, BlockType::iq3_s, BlockType::iq4_xs,
          BlockType::q2_k, BlockType::q3_k, BlockType::tq1_0, BlockType::tq2_0})
      for (uint64_t x_rows = 1; x_rows <= 13; ++x_rows)
        for (uint64_t rows = 1; rows <= 5; ++rows)
          run_case(kernels, pool, type, {rows, 1 + below(3), x_rows, below(3), below(3)});
  });
}

TEST(QuantisedProduct, FewRowsHaveTheResultsThatTheyHaveAlone) {
  ThreadPool pool(2);
  for (const BlockType type : all_types()) {
    const uint64_t most = few_rows(type), rows = 1 + below(40);
    const uint64_t k = (1 + below(20)) * block_info(type).elements;
    const Weights w = random_weights(type, rows, k);
    std::vector<float> x(most * k), alone(most * rows);
    for (float& value : x) value = normal();
    for (uint64_t i = 0; i < most; ++i)
      quantised_product(pool, type, w.blocks.data(), rows, k, &x[i * k], 1, k, &alone[i * rows],
                        rows);
    for (uint64_t count = 2; count <= most; ++count) {
      std::vector<float> together(count * rows);
      quantised_product(pool, type, w.blocks.data(), rows, k, x.data(), count, k, together.data(),
                        rows);
      EXPECT_EQ(std::memcmp(together.data(), alone.data(), together.size() * sizeof(float)), 0)
          << name_of(type) << ", " << rows << " x " << k << ", " << count << " activation rows";
    }
  }
}

TEST(QuantisedProduct, ManyActivationRowsAndLongRows) {
  ThreadPool pool(3);
  run_case(best_quantised_kernels(), pool, BlockType::q4_k, {37, 17, 401, 0, 1});
  run_case(best_quantised_kernels(), pool, BlockType::q8_0, {33, 131, 390, 1, 0});
}

// With extreme codes and activations, nothing may overflow or saturate.
TEST(QuantisedProduct, TheLargestCodesTimesTheLargestActivations) {
  ThreadPool pool(1);
  for_each_supported([&](const QuantisedKernels& kernels) {
    for (const BlockType type : all_types())
      for (const int byte : {0x00, 0x80, 0x7F, 0xFF})
        for (const uint64_t x_rows : {1, 9}) {
          Weights w = random_weights(type, 9, 512);
          for (uint8_t& b : w.blocks) b = static_cast<uint8_t>(byte);
          for (size_t at = 0; at < w.blocks.size(); at += block_info(type).bytes)
            set_block_factors(type, &w.blocks[at], std::exp2(normal()));
          dequantise(type, w.blocks.data(), w.values.data(), w.values.size());
          std::vector<float> x(x_rows * 512), y(x_rows * 9);
          for (float& value : x) value = below(8) == 0 ? 0.01f : -1.0f;
          QuantisedActivations rounded;
          quantise_activations(pool, type, x.data(), x_rows, 512, 512, rounded);
          quantised_product_with(kernels, pool, w.view(), rounded, y.data(), 9);
          check(w, x.data(), x_rows, 512, rounded, y.data(), 9,
                std::string(kernels.name) + " " + name_of(type) + " byte " + std::to_string(byte));
        }
  });
}

TEST(QuantisedProduct, RoundsActivationsAsDocumented) {
  ThreadPool pool(2);
  for (const BlockType type : {BlockType::q4_0, BlockType::q6_k}) {
    const uint32_t covered = block_info(type).elements;
    const uint64_t k = 12 * covered;
    std::vector<float> x(3 * k);
    for (float& value : x) value = normal() * std::exp2(normal() * 8);
    for (uint32_t e = 0; e < covered; ++e) x[e] = 0;
    for (uint32_t e = 0; e < covered; ++e) x[covered + e] = 0x1p-101f;
    QuantisedActivations rounded;
    quantise_activations(pool, type, x.data(), 3, k, k, rounded);
    ASSERT_EQ(rounded.scale_elements, covered);
    for (uint64_t group = 0; group < 3 * k / covered; ++group) {
      float a = 0;
      for (uint32_t e = 0; e < covered; ++e) a = std::max(a, std::abs(x[group * covered + e]));
      const bool tiny = a < 0x1p-100f;
      EXPECT_EQ(rounded.scales[group], tiny ? 0.0f : a / 127.0f);
      int sum32 = 0;
      for (uint32_t e = 0; e < covered; ++e) {
        const uint64_t at = group * covered + e;
        const float value = tiny ? 0.0f : std::nearbyintf(x[at] * (127.0f / a));
        ASSERT_EQ(rounded.values[at], static_cast<int>(value));
        sum32 = (e % 32 == 0 ? 0 : sum32) + rounded.values[at];
        if (e % 32 == 31) {
          ASSERT_EQ(rounded.sums32[at / 32], sum32);
          ASSERT_EQ(rounded.sums16[at / 16] + rounded.sums16[at / 16 - 1], sum32);
          if (covered == 32) {
            ASSERT_EQ(rounded.scaled_sums[at / 32],
                      rounded.scales[group] * static_cast<float>(sum32));
          }
        }
      }
    }
  }
}

TEST(QuantisedProduct, WhatIsNotFiniteComesOut) {
  ThreadPool pool(1);
  for_each_supported([&](const QuantisedKernels& kernels) {
    for (const BlockType type : {BlockType::q8_0, BlockType::q4_1, BlockType::q4_k})
      for (const uint64_t x_rows : {3, 20})
        for (const float bad :
             {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::quiet_NaN()}) {
          const Weights w = random_weights(type, 5, 512);
          std::vector<float> x(x_rows * 512, 1.0f), y(x_rows * 5);
          x[512 + 300] = bad;
          QuantisedActivations rounded;
          quantise_activations(pool, type, x.data(), x_rows, 512, 512, rounded);
          quantised_product_with(kernels, pool, w.view(), rounded, y.data(), 5);
          for (uint64_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 5 == 1) << i;
        }
  });
}

TEST(QuantisedProduct, PartsOfTheRows) {
  ThreadPool pool(2);
  for (const BlockType type : {BlockType::q5_k, BlockType::iq4_nl})
    for (const uint64_t x_rows : {1, 13}) {
      const Weights w = random_weights(type, 101, 512);
      std::vector<float> x(x_rows * 512), whole(x_rows * 101), parts(x_rows * 101);
      for (float& value : x) value = normal();
      quantised_product(pool, type, w.blocks.data(), 101, 512, x.data(), x_rows, 512, whole.data(),
                        101);
      QuantisedActivations rounded;
      quantise_activations(pool, type, x.data(), x_rows, 512, 512, rounded);
      check(w, x.data(), x_rows, 512, rounded, whole.data(), 101, name_of(type));
      std::memset(parts.data(), 0xCD, parts.size() * sizeof(float));
      for (const auto& [first, last] : {std::pair{0, 1}, {1, 1}, {1, 50}, {50, 101}})
        quantised_product_rows(w.view(), static_cast<uint64_t>(first), static_cast<uint64_t>(last),
                               rounded, parts.data(), 101);
      check(w, x.data(), x_rows, 512, rounded, parts.data(), 101, name_of(type));
      // With many activation rows, the whole product uses panels and its parts use dot products;
      // the compiler may contract them differently.
      if (x_rows == 1) {
        EXPECT_EQ(std::memcmp(parts.data(), whole.data(), parts.size() * sizeof(float)), 0);
      }
    }
}

TEST(QuantisedProduct, RowsGoToTheirExperts) {
  ThreadPool pool(2);
  for (const BlockType type : {BlockType::q4_k, BlockType::mxfp4})
    for (const uint64_t tokens : {1, 9, 60}) {
      constexpr uint64_t kExperts = 5, kRows = 43, kUses = 2;
      const uint64_t k = 2 * block_info(type).elements;
      const Weights all = random_weights(type, kExperts * kRows, k);
      const uint64_t bytes = kRows * all.view().row_bytes();
      std::vector<float> x(tokens * (k + 1)), y(tokens * kUses * (kRows + 3));
      for (float& value : x) value = normal();
      std::vector<int32_t> expert_of(tokens * kUses);
      for (int32_t& expert : expert_of) {
        expert = static_cast<int32_t>(below(kExperts - 1));
        if (below(2) == 0) expert = 0;  // one expert with many rows, the last with none
      }
      std::memset(y.data(), 0xCD, y.size() * sizeof(float));
      quantised_expert_product(pool, type, all.blocks.data(), kExperts, kRows, k, x.data(), tokens,
                               k + 1, kUses, expert_of.data(), y.data(), kRows + 3);
      for (uint64_t o = 0; o < tokens * kUses; ++o) {
        const auto expert = static_cast<uint64_t>(expert_of[o]);
        Weights one{type, kRows, k, {}, {}};
        one.blocks.assign(all.blocks.data() + expert * bytes,
                          all.blocks.data() + (expert + 1) * bytes);
        one.values.assign(all.values.data() + expert * kRows * k,
                          all.values.data() + (expert + 1) * kRows * k);
        const float* x_row = x.data() + o / kUses * (k + 1);
        QuantisedActivations rounded;
        quantise_activations(pool, type, x_row, 1, k, k, rounded);
        check(one, x_row, 1, k, rounded, y.data() + o * (kRows + 3), kRows + 3,
              name_of(type) + " row " + std::to_string(o));
      }
    }
}

TEST(QuantisedProduct, NothingToAddIsZero) {
  ThreadPool pool(2);
  for (const uint64_t x_rows : {0, 2, 9}) {
    std::vector<float> y(x_rows * 7, 5.0f);
    quantised_product(pool, BlockType::q4_k, nullptr, 7, 0, nullptr, x_rows, 0, y.data(), 7);
    for (const float value : y) EXPECT_EQ(value, 0.0f);
    quantised_product(pool, BlockType::q4_k, nullptr, 0, 0, nullptr, x_rows, 0, nullptr, 0);
  }
}

TEST(QuantisedProduct, MistakesAreErrors) {
  ThreadPool pool(1);
  std::vector<float> x(1024), y(64);
  const Weights w = random_weights(BlockType::q4_k, 4, 256);
  const auto message = [&](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message([&] {
              quantised_product(pool, BlockType::q4_k, w.blocks.data(), 4, 128, x.data(), 1, 128,
                                y.data(), 4);
            }).find("rows of 128 elements"),
            std::string::npos);
  EXPECT_NE(message([&] {
              quantised_product(pool, BlockType::q4_k, w.blocks.data(), 4, 256, x.data(), 2, 256,
                                y.data(), 3);
            }).find("y has rows of 4 elements only 3 apart"),
            std::string::npos);
  QuantisedActivations rounded;
  quantise_activations(pool, BlockType::q4_0, x.data(), 1, 256, 256, rounded);
  EXPECT_NE(message([&] {
              quantised_product(pool, w.view(), rounded, y.data(), 4);
            }).find("quantised in groups of 32"),
            std::string::npos);
  const int32_t expert = 3;
  EXPECT_NE(message([&] {
              quantised_expert_product(pool, BlockType::q4_k, w.blocks.data(), 2, 2, 256, x.data(),
                                       1, 256, 1, &expert, y.data(), 2);
            }).find("expert 3, there are 2"),
            std::string::npos);
}

}  // namespace
}  // namespace prism::cpu
