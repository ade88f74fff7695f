// Tests writing keys and values to caches, and rejected inputs, on every device found.
#include "ops/attention/rope_to_cache.h"

#include <cmath>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/quantise.h"
#include "support/devices/devices.h"
#include "support/seed.h"

namespace prism {
namespace {

struct Case {
  int64_t rows, heads, kv_heads, dim, dims;  // dims: rotated; 0: no rotation
  RopePairing pairing;
  ElementType x, cache;
  bool joined = false;  // q, k and v are views of one tensor
  int64_t values = -1;  // elements of a value; -1: dim, 0: there are none
};

// A head after rotation, in f64.
std::vector<double> turned(const std::vector<double>& x, int position,
                           const std::vector<float>& frequencies, const Case& c) {
  std::vector<double> y = x;
  const auto pairs = static_cast<size_t>(c.dims / 2);
  for (size_t i = 0; i < pairs; ++i) {
    const bool adjacent = c.pairing == RopePairing::adjacent;
    const size_t a = adjacent ? 2 * i : i, b = adjacent ? 2 * i + 1 : i + pairs;
    const double angle = position * static_cast<double>(frequencies[i]);
    y[a] = x[a] * std::cos(angle) - x[b] * std::sin(angle);
    y[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
  }
  return y;
}

// The error bound of a stored element: rotation, then rounding.
double bound(double value, double largest_of_block, ElementType type) {
  const double rotation = 4e-6 * (1 + std::fabs(value));
  if (type.is_block()) return rotation + largest_of_block * (0.5 / 127 + 1e-3);
  if (type == ElementType(DType::f16)) return rotation + std::fabs(value) * 0x1p-11 + 1e-7;
  if (type == ElementType(DType::bf16)) return rotation + std::fabs(value) * 0x1p-8;
  return rotation;
}

class CacheDevice : public ::testing::Test {
 protected:
  std::mt19937_64 engine_;
  void SetUp() override {
    const uint64_t seed = test_seed();
    std::cout << "seed " << seed << std::endl;
    engine_.seed(seed);
  }
  std::vector<double> random(int64_t count) {
    std::normal_distribution<double> normal(0, 2);
    std::vector<double> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(normal(engine_));
    return values;
  }
  void check(const Case& c, const Device& device);
};

void CacheDevice::check(const Case& c, const Device& device) {
  constexpr int64_t kSlots = 2;
  const int64_t positions = std::max<int64_t>(5, (c.rows + 1) / 2);
  const int64_t value_dim = c.values < 0 ? c.dim : c.values;
  const size_t count = value_dim > 0 ? 2 : 1;
  const Shape shapes[] = {{kSlots, positions, c.kv_heads, c.dim},
                          {kSlots, positions, c.kv_heads, value_dim}};
  std::vector<Tensor> caches;
  for (size_t i = 0; i < count; ++i) {
    const Tensor seven = full(shapes[i], 7.0, DType::f32, Device::cpu());
    caches.push_back(
        (c.cache.is_block() ? quantise(seven, c.cache.block()) : cast(seven, c.cache.plain()))
            .to(device)
            .eval());
  }
  std::vector<float> frequencies;
  for (int64_t i = 0; i < c.dims / 2; ++i)
    frequencies.push_back(static_cast<float>(std::pow(100.0, -2.0 * double(i) / double(c.dims))));
  const Tensor turns = c.dims ? from_vector(frequencies, {c.dims / 2}, device) : Tensor();
  const int64_t all = c.heads + 2 * c.kv_heads;
  CompiledFunction step = compile([&](std::span<const Tensor> in) {
    const Tensor x = cast(in[0], c.x.plain());
    const auto part = [&](int64_t from, int64_t to) {
      const Tensor view = x.slice(1, from, to);
      return c.joined ? view : view.contiguous();
    };
    RopeOptions options;
    options.dims = c.dims;
    options.pairing = c.pairing;
    Tensor v;
    if (count == 2) v = part(c.heads + c.kv_heads, all).slice(2, 0, value_dim);
    if (v && !c.joined) v = v.contiguous();
    const CachedRows done =
        rope_to_cache(part(0, c.heads), part(c.heads, c.heads + c.kv_heads), v, in[1], turns,
                      options, caches[0], count == 2 ? caches[1] : Tensor());
    std::vector<Tensor> results = {done.q, done.k_cache};
    if (count == 2) results.push_back(done.v_cache);
    return results;
  });
  // The expected caches: by cache, row, head and element.
  std::vector<double> wanted[2];
  for (size_t i = 0; i < count; ++i)
    wanted[i].assign(static_cast<size_t>(shapes[i].elements()), 7.0);
  for (int run = 0; run < 3; ++run) {
    std::vector<int32_t> places;
    std::vector<int32_t> order(static_cast<size_t>(kSlots * positions));
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::shuffle(order.begin(), order.end(), engine_);
    for (int64_t row = 0; row < c.rows; ++row) {
      places.push_back(static_cast<int32_t>(engine_() % 5000));
      places.push_back(order[static_cast<size_t>(row)]);
    }
    const Tensor x =
        cast(from_doubles(random(c.rows * all * c.dim), {c.rows, all, c.dim}, DType::f32, device),
             c.x.plain());
    const std::vector<double> values = x.to_doubles();
    const std::vector<Tensor> got =
        step({cast(x, DType::f32).eval(), from_vector(places, {c.rows, 2}, device)});
    const std::vector<double> q = got[0].to_doubles();
    std::vector<double> stored[2];
    for (size_t i = 0; i < count; ++i)
      stored[i] = (c.cache.is_block() ? dequantise(got[1 + i]) : got[1 + i]).to_doubles();
    for (int64_t row = 0; row < c.rows; ++row) {
      for (int64_t head = 0; head < all; ++head) {
        const auto first = values.begin() + (row * all + head) * c.dim;
        const std::vector<double> own(first, first + c.dim);
        const bool is_v = head >= c.heads + c.kv_heads;
        const std::vector<double> turned_own =
            is_v ? own : turned(own, places[static_cast<size_t>(2 * row)], frequencies, c);
        const int64_t length = is_v ? value_dim : c.dim;
        for (int64_t e = 0; e < length; ++e) {
          const double value = turned_own[static_cast<size_t>(e)];
          if (head < c.heads) {
            ASSERT_NEAR(q[static_cast<size_t>((row * c.heads + head) * c.dim + e)], value,
                        bound(value, 0, c.x))
                << device.id() << " q, row " << row << " head " << head << " element " << e;
            continue;
          }
          const int64_t kv = (head - c.heads) % c.kv_heads;
          const auto at = static_cast<size_t>(
              (places[static_cast<size_t>(2 * row + 1)] * c.kv_heads + kv) * length + e);
          wanted[is_v][at] = value;
        }
      }
    }
    for (size_t which = 0; which < count; ++which) {
      for (size_t i = 0; i < wanted[which].size(); ++i) {
        double largest = 0;
        if (c.cache.is_block())
          for (size_t e = i / 32 * 32; e < i / 32 * 32 + 32; ++e)
            largest = std::max(largest, std::fabs(wanted[which][e]));
        ASSERT_NEAR(stored[which][i], wanted[which][i], bound(wanted[which][i], largest, c.cache))
            << device.id() << (which ? " v" : " k") << " element " << i << " run " << run;
      }
    }
  }
}

TEST_F(CacheDevice, RotatesConvertsAndWrites) {
  const ElementType f32 = DType::f32, f16 = DType::f16, bf16 = DType::bf16;
  const ElementType q8 = BlockType::q8_0;
  const auto halves = RopePairing::halves, adjacent = RopePairing::adjacent;
  const std::vector<Case> cases = {
      {1, 4, 2, 64, 64, halves, f32, f32},
      {3, 3, 1, 32, 32, adjacent, f32, f16},
      {7, 8, 2, 128, 64, halves, f32, f16, true},
      {2, 2, 2, 96, 96, adjacent, f32, q8},
      {5, 4, 4, 64, 64, halves, f32, q8, true},
      {10, 5, 1, 80, 20, halves, f16, f16},
      {4, 2, 1, 256, 0, halves, f32, bf16},
      {1, 1, 1, 32, 0, adjacent, bf16, q8},
      {6, 6, 3, 6, 4, adjacent, f32, f32, true},
      // Values of their own length, and none.
      {3, 4, 2, 48, 16, halves, f32, f16, false, 32},
      {5, 4, 2, 64, 64, adjacent, f32, q8, true, 32},
      {67, 5, 3, 24, 8, halves, f32, f32, true, 20},
      {4, 6, 1, 576, 64, adjacent, f32, f16, false, 0},
      {2, 3, 1, 96, 0, halves, f32, q8, false, 0},
      {70, 4, 1, 40, 40, halves, f32, f32, false, 0},
      // Enough rows for several heads per group.
      {67, 13, 3, 64, 64, halves, f32, f16},
      {131, 9, 2, 40, 20, adjacent, f32, f32, true},
  };
  for (const Device& device : test::every_device())
    for (const Case& c : cases) check(c, device);
}

TEST_F(CacheDevice, MistakesAreErrors) {
  const Device cpu = Device::cpu();
  const Tensor cache = zeros({1, 4, 2, 32}, DType::f16, cpu);
  const Tensor other = zeros({1, 4, 2, 32}, DType::f16, cpu);
  const Tensor q = zeros({1, 4, 32}, DType::f32, cpu), k = zeros({1, 2, 32}, DType::f32, cpu);
  const auto places = [&](int32_t row) { return from_vector<int32_t>({3, row}, {1, 2}, cpu); };
  const auto use = [&](const Tensor& kk, const Tensor& at) {
    return rope_to_cache(q, kk, k, at, Tensor(), {}, cache, other).k_cache;
  };
  EXPECT_THROW(use(k, places(0)), Error) << "caches without values";
  cache.eval();
  other.eval();
  EXPECT_NO_THROW(use(k, places(3)).eval());
  EXPECT_THROW(use(k, places(4)).eval(), Error) << "a row outside";
  EXPECT_THROW(use(k, places(-1)).eval(), Error);
  EXPECT_THROW(use(zeros({1, 3, 32}, DType::f32, cpu), places(0)), Error);
  EXPECT_THROW(use(zeros({1, 2, 32}, DType::f16, cpu), places(0)), Error);
  EXPECT_THROW(use(k, from_vector<int32_t>({0}, {1}, cpu)), Error);
}

}  // namespace
}  // namespace prism
