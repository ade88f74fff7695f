// Tests that the q, k and v products, their rotation and the cache writes become one step with the
// results of separate launches.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "ops/attention/rope_to_cache.h"
#include "ops/products/joint_products.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/quantise.h"
#include "support/devices/devices.h"
#include "support/devices/interpreted_device.h"
#include "support/ops/drawn.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

constexpr auto kHalves = RopePairing::halves, kAdjacent = RopePairing::adjacent;
constexpr int64_t kSlots = 2, kPositions = 5;

struct Case {
  const char* what;
  std::vector<ElementType> weights;             // of q, k, v
  int64_t rows, k, heads, kv_heads, dim, dims;  // dims: rotated; 0: no rotation
  RopePairing pairing;
  ElementType cache;
  bool bias = false;
  bool slow = false;  // skipped on software devices, which take a second to compile each
};

// The start of a layer's attention.
struct Layer {
  Tensor x, places, frequencies;
  std::vector<Tensor> w, b;
  std::vector<int32_t> position, row;  // of each row of x
};

class ProductsToCache : public test::DrawnTensors {
 protected:
  static std::vector<Device> devices() {
    std::vector<Device> all = {test::interpreted_device(1), test::interpreted_device(64)};
    for (const Device& device : test::every_device())
      if (joins_products(device.info(), 1)) all.push_back(device);
    return all;
  }
  static size_t steps_named(const Plan& plan, std::string_view name) {
    return static_cast<size_t>(std::ranges::count(plan.steps(), name, &PlanStep::name));
  }
  Layer layer(const Case& c, const Device& device) {
    Layer l;
    l.x = draw(device, {c.rows, c.k});
    for (size_t i = 0; i < 3; ++i) {
      const int64_t n = (i == 0 ? c.heads : c.kv_heads) * c.dim;
      l.w.push_back(draw(device, {n, c.k}, c.weights[i]));
      l.b.push_back(c.bias ? draw(device, {n}) : Tensor());
    }
    std::vector<int32_t> order, places;
    for (int32_t i = 0; i < kSlots * kPositions; ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), engine);
    for (int64_t i = 0; i < c.rows; ++i) {
      l.position.push_back(static_cast<int32_t>(engine() % 5000));
      // The last of several rows has no place: nothing is written for it.
      l.row.push_back(c.rows > 2 && i + 1 == c.rows ? -1 : order[static_cast<size_t>(i)]);
      places.insert(places.end(), {l.position.back(), l.row.back()});
    }
    l.places = from_vector(places, {c.rows, 2}, device);
    std::vector<float> turns;
    for (int64_t i = 0; i < c.dims / 2; ++i)
      turns.push_back(static_cast<float>(std::pow(100.0, -2.0 * double(i) / double(c.dims))));
    if (c.dims) l.frequencies = from_vector(turns, {c.dims / 2}, device);
    return l;
  }
  static Tensor new_cache(const Case& c, const Device& device) {
    const Tensor seven =
        full({kSlots, kPositions, c.kv_heads, c.dim}, 7.0, DType::f32, Device::cpu());
    const Tensor stored =
        c.cache.is_block() ? quantise(seven, c.cache.block()) : cast(seven, c.cache.plain());
    return stored.to(device).eval();
  }
  // apart: the products are evaluated first.
  static std::vector<Tensor> outputs(const Case& c, const Layer& l, bool apart) {
    const Device device = l.x.device();
    std::vector<Tensor> made;
    for (size_t i = 0; i < 3; ++i) {
      const Tensor y = linear(l.x, l.w[i], l.b[i]);
      made.push_back((apart ? y.eval() : y).reshape({c.rows, -1, c.dim}));
    }
    const CachedRows done =
        rope_to_cache(made[0], made[1], made[2], l.places, l.frequencies, {c.dims, c.pairing, 1.25},
                      new_cache(c, device), new_cache(c, device));
    return {done.q, done.k_cache, done.v_cache};
  }
};

const ElementType kF32 = DType::f32, kF16 = DType::f16, kBf16 = DType::bf16, kQ8 = BlockType::q8_0,
                  kQ4 = BlockType::q4_k, kQ6 = BlockType::q6_k;

// Both pairings, some or all dims, grouped heads, one or several rows, biases, every cache type.
const std::vector<Case> kCases = {
    {"f32, halves", {kF32, kF32, kF32}, 1, 64, 4, 2, 16, 16, kHalves, kF32},
    {"f32, adjacent", {kF32, kF32, kF32}, 2, 40, 3, 1, 10, 10, kAdjacent, kF16, false, true},
    {"f16, some of the dims", {kF16, kF16, kF16}, 2, 48, 4, 2, 16, 6, kHalves, kF16},
    {"q8_0, some of the dims", {kQ8, kQ8, kQ8}, 1, 96, 2, 2, 14, 4, kAdjacent, kBf16, false, true},
    {"q4_k and q6_k", {kQ4, kQ4, kQ6}, 1, 512, 2, 1, 64, 64, kHalves, kF16, false, true},
    {"q4_k and q6_k, biases", {kQ4, kQ4, kQ6}, 2, 256, 3, 1, 32, 32, kAdjacent, kF16, true},
    {"f32, no rotation", {kF32, kF32, kF32}, 2, 32, 2, 1, 6, 0, kHalves, kF32},
    {"five rows", {kQ8, kQ8, kQ8}, 5, 64, 3, 1, 8, 8, kHalves, kF32},
    {"eight rows, biases", {kF16, kF16, kF16}, 8, 24, 5, 1, 8, 4, kHalves, kF16, true},
};

TEST_F(ProductsToCache, OneStepAndTheSameNumbers) {
  for (const Device& device : devices()) {
    for (const Case& c : kCases) {
      if (!joins_products(device.info(), c.rows) || (c.slow && device.info().software)) continue;
      SCOPED_TRACE(device.id() + ", " + c.what);
      const Layer l = layer(c, device);
      const size_t buffers = (c.bias ? 3 : 0) + (c.dims ? 9 : 8);
      const bool fits = device.info().capabilities.max_buffers >= buffers;
      const Plan plan(outputs(c, l, false));
      EXPECT_EQ(steps_named(plan, "matmul side by side to cache"), fits) << plan.explain();
      EXPECT_EQ(steps_named(plan, "rope_to_cache"), !fits) << plan.explain();
      const std::vector<Tensor> together = outputs(c, l, false), apart = outputs(c, l, true);
      eval(together);
      eval(apart);
      for (size_t i = 0; i < 3; ++i) {
        const std::vector<double> got = together[i].to_doubles(), wanted = apart[i].to_doubles();
        ASSERT_EQ(got.size(), wanted.size());
        // WGSL compilers may contract a multiply and an add in one kernel and not in the other.
        const bool exact = device.info().capabilities.dialect != "wgsl";
        for (size_t e = 0; e < got.size(); ++e) {
          const double most = exact ? 0 : 2e-5 + 0x1p-7 * std::fabs(wanted[e]);
          ASSERT_NEAR(got[e], wanted[e], most) << "output " << i << ", element " << e;
        }
      }
    }
  }
}

// Compares with a computation in double, with unrounded weights.
TEST_F(ProductsToCache, AsComputedInDouble) {
  for (const Device& device : devices()) {
    for (const Case& c : kCases) {
      if (c.weights[0].is_block() || !joins_products(device.info(), c.rows) ||
          (c.slow && device.info().software))
        continue;
      SCOPED_TRACE(device.id() + ", " + c.what);
      const Layer l = layer(c, device);
      const std::vector<Tensor> got = outputs(c, l, false);
      eval(got);
      const std::vector<double> x = l.x.to_doubles();
      std::vector<double> turns;
      if (c.dims) turns = l.frequencies.to_doubles();
      std::vector<std::vector<double>> wanted = {
          std::vector<double>(static_cast<size_t>(c.rows * c.heads * c.dim)),
          std::vector<double>(static_cast<size_t>(got[1].elements()), 7.0),
          std::vector<double>(static_cast<size_t>(got[2].elements()), 7.0)};
      for (size_t which = 0; which < 3; ++which) {
        const int64_t n = l.w[which].size(0);
        const std::vector<double> w = l.w[which].to_doubles();
        std::vector<double> bias(static_cast<size_t>(n));
        if (c.bias) bias = l.b[which].to_doubles();
        for (int64_t row = 0; row < c.rows; ++row) {
          std::vector<double> y = bias;
          for (int64_t r = 0; r < n; ++r)
            for (int64_t i = 0; i < c.k; ++i)
              y[static_cast<size_t>(r)] +=
                  w[static_cast<size_t>(r * c.k + i)] * x[static_cast<size_t>(row * c.k + i)];
          for (int64_t first = 0; which < 2 && first < n; first += c.dim)
            for (int64_t pair = 0; pair < c.dims / 2; ++pair) {
              const bool adjacent = c.pairing == kAdjacent;
              double& a = y[static_cast<size_t>(first + (adjacent ? 2 * pair : pair))];
              double& b =
                  y[static_cast<size_t>(first + (adjacent ? 2 * pair + 1 : pair + c.dims / 2))];
              const double angle =
                  l.position[static_cast<size_t>(row)] * turns[static_cast<size_t>(pair)];
              const double before = a;
              a = 1.25 * (before * std::cos(angle) - b * std::sin(angle));
              b = 1.25 * (before * std::sin(angle) + b * std::cos(angle));
            }
          const int64_t to = which == 0 ? row : l.row[static_cast<size_t>(row)];
          if (to >= 0) std::ranges::copy(y, wanted[which].begin() + to * n);
        }
      }
      for (size_t i = 0; i < 3; ++i) {
        const std::vector<double> found = got[i].to_doubles();
        // Rounding of the cache, and of sums of k products below 1.
        const double rounding = i == 0 || c.cache == kF32 ? 0 : c.cache == kF16 ? 0x1p-11 : 0x1p-8;
        for (size_t e = 0; e < found.size(); ++e)
          ASSERT_NEAR(found[e], wanted[i][e],
                      2e-5 + 1e-7 * double(c.k) + rounding * std::fabs(wanted[i][e]))
              << "output " << i << ", element " << e;
      }
    }
  }
}

// A device that rejects the merged kernel gets separate launches.
TEST_F(ProductsToCache, FallsApart) {
  const Case c = {"", {kQ8, kQ8, kQ8}, 2, 64, 2, 1, 32, 32, kHalves, kF16};
  for (const auto& [refused, launches] :
       {std::pair("", 1), {"products_to_cache", 2}, {"vector_products", 4}}) {
    SCOPED_TRACE(refused);
    const Device device = test::interpreted_device(64, refused);
    const Layer l = layer(c, device);
    const std::vector<Tensor> together = outputs(c, l, false), apart = outputs(c, l, true);
    const Plan plan(together);
    size_t found = 0;
    for (const PlanStep& step : plan.steps()) found += step.launches.size();
    EXPECT_EQ(found, static_cast<size_t>(launches) + 1)
        << plan.explain();  // plus the rounding of rows
    eval(together);
    eval(apart);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(together[i].to_doubles(), apart[i].to_doubles());
  }
}

// Block caches, norms in between, results with other users, devices with few bindings.
TEST_F(ProductsToCache, OnlyWhatCanBeJoined) {
  const Case plain = {"", {kF32, kF32, kF32}, 1, 32, 2, 1, 32, 32, kHalves, kF32};
  const auto joined = [&](const std::vector<Tensor>& wanted) {
    const Plan plan(wanted);
    EXPECT_EQ(
        steps_named(plan, "rope_to_cache") + steps_named(plan, "matmul side by side to cache"), 1u)
        << plan.explain();
    return steps_named(plan, "matmul side by side to cache") == 1;
  };
  const Device device = test::interpreted_device(64);
  EXPECT_TRUE(joined(outputs(plain, layer(plain, device), false)));
  Case blocks = plain;
  blocks.cache = kQ8;
  EXPECT_FALSE(joined(outputs(blocks, layer(blocks, device), false)));
  const Device eight = test::interpreted_device(64, "", 8);
  EXPECT_FALSE(joined(outputs(plain, layer(plain, eight), false)));

  const Layer l = layer(plain, device);
  const auto by_head = [&](size_t i) { return linear(l.x, l.w[i]).reshape({1, -1, plain.dim}); };
  const auto to_cache = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    return rope_to_cache(q, k, v, l.places, l.frequencies, {}, new_cache(plain, device),
                         new_cache(plain, device))
        .q;
  };
  EXPECT_FALSE(joined({to_cache(rms_norm(by_head(0)), rms_norm(by_head(1)), by_head(2))}))
      << "norms";
  const Tensor k = by_head(1);
  EXPECT_FALSE(joined({to_cache(by_head(0), k, by_head(2)), k})) << "asked for";
  EXPECT_FALSE(joined({to_cache(by_head(0), k, by_head(2)), k + 1.0})) << "used twice";
}

}  // namespace
}  // namespace prism
