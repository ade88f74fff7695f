// All attention options against float64, on every instruction set.
#include "cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "cpu/elementwise.h"
#include "cpu/simd_targets.h"
#include "prism/error.h"
#include "support/seed.h"

namespace prism::cpu {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

uint32_t fresh_seed() {
  const uint32_t seed = test_seed();
  std::printf("seed %u\n", seed);
  return seed;
}

// A cache in its type and in f64. Entries beyond a sequence's keys are poisoned.
struct Cache {
  std::vector<uint8_t> bytes;
  std::vector<double> values;  // [slot][position][head][dim]
};

Cache random_cache(std::mt19937& random, ElementType type, size_t rows, size_t dim) {
  std::normal_distribution<float> normal;
  Cache cache;
  const size_t row_bytes = type.row_bytes(dim);
  cache.bytes.resize(rows * row_bytes);
  cache.values.resize(rows * dim);
  for (size_t row = 0; row < rows; ++row) {
    uint8_t* to = cache.bytes.data() + row * row_bytes;
    double* values = cache.values.data() + row * dim;
    if (type.is_block()) {
      for (size_t block = 0; block < dim / 32; ++block, to += 34) {
        const uint16_t factor = f16_from_f32(0.02f + 0.001f * static_cast<float>(random() % 9));
        std::memcpy(to, &factor, 2);
        for (size_t i = 0; i < 32; ++i) {
          const int8_t quant = static_cast<int8_t>(random() % 255);
          std::memcpy(to + 2 + i, &quant, 1);
          values[block * 32 + i] = static_cast<double>(f32_from_f16(factor)) * quant;
        }
      }
      continue;
    }
    std::vector<float> numbers(dim);
    for (float& v : numbers) v = normal(random);
    store(DType::f32, numbers.data(), type.plain(), to, dim);
    load(type.plain(), to, 1, DType::f64, values, dim);
  }
  return cache;
}

struct Problem {
  Attention options;
  std::vector<AttentionSpan> spans;
  size_t positions = 0;  // per slot
  size_t block = 0;      // if not 0: the positions are in shuffled blocks of this size
};

void check(ThreadPool& pool, std::mt19937& random, Problem problem, bool with_mask,
           bool with_sinks) {
  Attention& o = problem.options;
  std::normal_distribution<float> normal;
  size_t rows = 0, slots = 1;
  for (const AttentionSpan& span : problem.spans) {
    rows = std::max<size_t>(rows, span.first_row + span.queries);
    slots = std::max<size_t>(slots, span.slot + 1);
  }
  o.q_head = o.dim + 1;
  o.q_row = o.q_head * o.heads + 2;
  o.out_head = o.dim;
  o.out_row = o.dim * o.heads + 1;
  o.value_dim = o.dim;
  o.k.head = o.cache.row_bytes(o.dim);
  o.k.position = o.k.head * o.kv_heads;
  const size_t block = problem.block ? problem.block : problem.positions;
  const size_t blocks = (problem.positions + block - 1) / block;  // per slot
  o.k.slot = o.k.position * block;
  o.v = o.k;
  o.mask_row = problem.positions;
  std::vector<int32_t> table(slots * blocks);
  std::iota(table.begin(), table.end(), 0);
  if (problem.block) {
    std::shuffle(table.begin(), table.end(), random);
    o.table = table.data();
    o.table_row = blocks;
    o.block = block;
  }
  const size_t cache_rows = slots * blocks * block * o.kv_heads;
  const Cache k = random_cache(random, o.cache, cache_rows, o.dim);
  const Cache v = random_cache(random, o.cache, cache_rows, o.dim);
  std::vector<float> q(rows * o.q_row), mask(rows * o.mask_row), sinks(o.heads);
  for (float& x : q) x = 2 * normal(random);
  for (float& x : mask) x = random() % 4 == 0 ? -kInfinity : normal(random);
  for (float& x : sinks) x = normal(random);
  if (with_mask) o.mask = mask.data();
  if (with_sinks) o.sinks = sinks.data();
  std::vector<float> out(rows * o.out_row, kNaN);
  attention(pool, o, q.data(), k.bytes.data(), v.bytes.data(), problem.spans.data(),
            problem.spans.size(), out.data());
  double error = 0, power = 0;
  for (const AttentionSpan& span : problem.spans)
    for (size_t query = 0; query < span.queries; ++query)
      for (size_t head = 0; head < o.heads; ++head) {
        const size_t row = span.first_row + query, position = span.keys - span.queries + query;
        const size_t kv_head = head / (o.heads / o.kv_heads);
        const auto cached = [&](const Cache& cache, size_t j) {
          const auto number = static_cast<size_t>(table[span.slot * blocks + j / block]);
          return cache.values.data() +
                 ((number * block + j % block) * o.kv_heads + kv_head) * o.dim;
        };
        std::vector<double> scores, wanted(o.dim, 0.0);
        std::vector<size_t> keys;
        double largest = with_sinks ? sinks[head] : -kInfinity;
        for (size_t j = 0; j < span.keys; ++j) {
          if (o.causal && j > position) continue;
          if (o.window != 0 && j + o.window <= position) continue;
          if (o.window != 0 && j >= position + o.window) continue;
          double score = 0;
          for (size_t i = 0; i < o.dim; ++i)
            score += static_cast<double>(q[row * o.q_row + head * o.q_head + i]) * cached(k, j)[i];
          score *= static_cast<double>(o.scale);
          if (o.soft_cap > 0) {
            const double cap = static_cast<double>(o.soft_cap);
            score = cap * std::tanh(score / cap);
          }
          if (with_mask) score += static_cast<double>(mask[row * o.mask_row + j]);
          scores.push_back(score);
          keys.push_back(j);
          largest = std::max(largest, score);
        }
        double sum = with_sinks ? std::exp(sinks[head] - largest) : 0, size = 0;
        for (size_t i = 0; i < keys.size() && largest > -kInfinity; ++i) {
          const double weight = std::exp(scores[i] - largest);
          sum += weight;
          for (size_t e = 0; e < o.dim; ++e) wanted[e] += weight * cached(v, keys[i])[e];
        }
        for (double& x : wanted) {
          x = sum > 0 ? x / sum : 0;
          size = std::max(size, std::abs(x));
        }
        for (size_t e = 0; e < o.dim; ++e) {
          const double got = out[row * o.out_row + head * o.out_head + e];
          ASSERT_NEAR(got, wanted[e], 2e-5 * (size + 0.1))
              << "query " << query << " head " << head << " element " << e;
          error += (got - wanted[e]) * (got - wanted[e]);
          power += wanted[e] * wanted[e];
        }
      }
  ASSERT_LE(error, 1e-10 * power);
}

TEST(CpuAttention, Variations) {
  std::mt19937 random(fresh_seed());
  ThreadPool one(1), three(3);
  const ElementType types[] = {DType::f32, DType::f16, DType::bf16, BlockType::q8_0};
  for (int64_t target : simd_targets()) {
    UseSimdTarget use(target);
    for (int round = 0; round < 24; ++round) {
      const ElementType type = types[round % 4];
      Problem problem;
      Attention& o = problem.options;
      o.cache = type;
      o.dim = type.is_block() ? 64 : (std::vector<size_t>{1, 8, 40, 64, 128})[random() % 5];
      o.kv_heads = 1 + random() % 3;
      o.heads = o.kv_heads * (std::vector<size_t>{1, 2, 5, 13})[random() % 4];
      o.scale = 1 / std::sqrt(static_cast<float>(o.dim));
      o.causal = random() % 4 != 0;
      o.window = random() % 3 == 0 ? 1 + random() % 40 : 0;
      o.soft_cap = random() % 3 == 0 ? 5.0f : 0.0f;
      problem.positions = 301;
      problem.block = (std::vector<size_t>{0, 1, 16, 256})[random() % 4];
      problem.spans = {{0, 1, 301, 1}, {1, 33, 150, 0}, {34, 2, 2, 2}};
      SCOPED_TRACE(testing::Message() << simd_target_name(target) << " " << type.name() << " dim "
                                      << o.dim << " heads " << o.heads << "/" << o.kv_heads
                                      << " causal " << o.causal << " window " << o.window << " cap "
                                      << o.soft_cap << " block " << problem.block);
      check(random() % 2 ? one : three, random, problem, random() % 3 == 0, random() % 3 == 0);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(CpuAttention, OneQueryOverALongCacheIsSplit) {
  std::mt19937 random(fresh_seed());
  ThreadPool pool(4);
  for (const ElementType type : {ElementType(DType::f16), ElementType(BlockType::q8_0)})
    for (size_t window : {0, 700}) {
      Problem problem;
      problem.options = {
          .heads = 4, .kv_heads = 2, .dim = 96, .scale = 0.1f, .window = window, .cache = type};
      problem.positions = 2003;
      problem.spans = {{0, 1, 2003, 0}};
      check(pool, random, problem, false, true);
      problem.options.mask = nullptr;
      problem.block = 128;
      check(pool, random, problem, true, false);
    }
}

TEST(CpuAttention, WideHeads) {
  std::mt19937 random(fresh_seed());
  ThreadPool pool(2);
  Problem problem;
  problem.options = {.heads = 16, .kv_heads = 1, .dim = 576, .scale = 0.04f, .cache = DType::f32};
  problem.positions = 140;
  problem.spans = {{0, 3, 140, 0}};
  check(pool, random, problem, false, false);
}

TEST(CpuAttention, NothingSeenGivesZeros) {
  ThreadPool pool(1);
  const std::vector<float> q(4, 1.0f), kv(8, 1.0f), mask(2, -kInfinity);
  std::vector<float> out(4, kNaN);
  Attention o{
      .heads = 1, .kv_heads = 1, .dim = 4, .cache = DType::f32, .mask = mask.data(), .mask_row = 2};
  o.q_row = o.q_head = o.out_row = o.out_head = 4;
  o.value_dim = o.dim;
  o.k.position = o.k.head = 16;
  o.v = o.k;
  const AttentionSpan span{0, 1, 2, 0};
  attention(pool, o, q.data(), kv.data(), kv.data(), &span, 1, out.data());
  EXPECT_EQ(out, std::vector<float>(4, 0.0f));
  // NaN inputs must stay visible.
  const std::vector<float> no_numbers(4, kNaN);
  o.mask = nullptr;
  attention(pool, o, no_numbers.data(), kv.data(), kv.data(), &span, 1, out.data());
  for (float value : out) EXPECT_TRUE(std::isnan(value));
}

TEST(CpuAttention, RefusesWhatDoesNotFit) {
  ThreadPool pool(1);
  float x = 0;
  const AttentionSpan span{0, 2, 1, 0};
  Attention o{.heads = 3, .kv_heads = 2, .dim = 4, .cache = DType::f32};
  EXPECT_THROW(attention(pool, o, &x, &x, &x, &span, 0, &x), Error);
  o.kv_heads = 1;
  EXPECT_THROW(attention(pool, o, &x, &x, &x, &span, 1, &x), Error);
  o.cache = BlockType::q8_0;
  EXPECT_THROW(attention(pool, o, &x, &x, &x, &span, 0, &x), Error);
  o.cache = DType::i8;
  EXPECT_THROW(attention(pool, o, &x, &x, &x, &span, 0, &x), Error);
}

// Tokens that are checked together must be those of single steps.
TEST(CpuAttention, FewQueriesGiveWhatEachGivesAlone) {
  std::mt19937 random(fresh_seed());
  std::normal_distribution<float> normal;
  ThreadPool pool(3);
  for (const size_t group : {1, 3, 12})
    for (const size_t window : {0, 100})
      for (const uint32_t keys : {5, 66, 99, 259, 514, 1030}) {
        Attention o;
        o.kv_heads = 2;
        o.heads = 2 * group;
        o.dim = 64;
        o.window = window;
        o.scale = 0.125f;
        o.q_head = o.out_head = o.dim;
        o.q_row = o.out_row = o.dim * o.heads;
        o.cache = DType::f16;
        o.value_dim = o.dim;
        o.k.head = o.cache.row_bytes(o.dim);
        o.k.position = o.k.head * o.kv_heads;
        o.v = o.k;
        constexpr uint32_t kQueries = 4;
        const Cache k = random_cache(random, o.cache, keys * o.kv_heads, o.dim);
        const Cache v = random_cache(random, o.cache, keys * o.kv_heads, o.dim);
        std::vector<float> q(kQueries * o.q_row), together(q.size()), alone(q.size());
        for (float& each : q) each = normal(random);
        for (uint32_t queries = 2; queries <= kQueries; ++queries) {
          const AttentionSpan span{0, queries, keys, 0};
          attention(pool, o, q.data(), k.bytes.data(), v.bytes.data(), &span, 1, together.data());
          for (uint32_t i = 0; i < queries; ++i) {
            const AttentionSpan one{i, 1, keys - queries + 1 + i, 0};
            attention(pool, o, q.data(), k.bytes.data(), v.bytes.data(), &one, 1, alone.data());
          }
          EXPECT_EQ(std::memcmp(together.data(), alone.data(), queries * o.q_row * sizeof(float)),
                    0)
              << queries << " queries, " << keys << " keys, group " << group << ", window "
              << window;
        }
      }
}

}  // namespace
}  // namespace prism::cpu
