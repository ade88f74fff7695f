// Tests that the producer of a quantised product's rows also rounds them, with the results of
// separate launches.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "ops/attention/rope_to_cache.h"
#include "ops/products/joint_products.h"
#include "prism/ops/attention.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/quantise.h"
#include "prism/ops/softmax.h"
#include "support/devices/devices.h"
#include "support/devices/interpreted_device.h"
#include "support/ops/drawn.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

class RoundedMakers : public test::DrawnTensors {
 protected:
  static std::vector<Device> devices() {
    std::vector<Device> all = test::every_device();
    all.push_back(test::interpreted_device(16));
    all.push_back(test::interpreted_device(16, {}, 64, true));  // with overlapping launches
    return all;
  }

  // Software devices other than Vulkan's take many seconds to compile each product.
  static bool compiles_slowly(const Device& device) {
    return device.info().software && device.info().capabilities.dialect != "spirv";
  }

  static size_t steps_named(const Plan& plan, std::string_view name) {
    return static_cast<size_t>(std::ranges::count(plan.steps(), name, &PlanStep::name));
  }

  // If the scale of a norm is applied last, an element may round to the neighbouring byte, which
  // changes all results by 1/127 of its block's largest times a weight, relative to the root of the
  // row's length. With a dozen results or fewer this estimate is too noisy.
  static void expect_close(const std::vector<double>& got, const std::vector<double>& want) {
    ASSERT_GT(want.size(), 12u);
    ASSERT_EQ(got.size(), want.size());
    double squares = 0;
    for (const double each : want) squares += each * each;
    const double size = std::sqrt(squares / static_cast<double>(want.size()));
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.015 * size) << i;
  }
};

struct Normed {
  bool centred;
  int64_t rows, length;
};

TEST_F(RoundedMakers, Norms) {
  // One block, idle lanes, several fours per lane, more than registers hold.
  const std::vector<Normed> all = {{false, 1, 32},  {true, 3, 96},     {false, 8, 544},
                                   {true, 1, 4128}, {false, 2, 12320}, {false, 1, 33024}};
  for (const Device& device : devices()) {
    if (device.info().is_cpu) continue;
    for (const Normed& one : all) {
      if (compiles_slowly(device) && one.length > 32) continue;
      SCOPED_TRACE(device.id() + ", " + std::to_string(one.rows) + " x " +
                   std::to_string(one.length) + (one.centred ? " centred" : ""));
      const Tensor x = draw(device, {one.rows, one.length}), scale = draw(device, {one.length}),
                   shift = draw(device, {one.length}),
                   w = draw(device, {7, one.length}, BlockType::q8_0);
      const auto normed = [&] {
        return one.centred ? layer_norm(x, scale, shift) : rms_norm(x, scale);
      };
      const std::string name = one.centred ? "layer_norm" : "rms_norm";
      const Tensor apart = normed().eval(), wanted = linear(apart, w).eval();

      const Tensor alone = linear(normed(), w);
      const Plan plan(std::span(&alone, 1));
      EXPECT_EQ(steps_named(plan, "round_rows"), 0u) << plan.explain();
      EXPECT_EQ(plan.steps().size(), 2u) << plan.explain();
      EXPECT_EQ(alone.to_doubles(), wanted.to_doubles());

      // Another op needs the unrounded rows.
      const Tensor both = normed(), product = linear(both, w), other = softmax(both);
      Tensor outputs[] = {product, other};
      const Plan kept(outputs);
      EXPECT_EQ(steps_named(kept, "round_rows"), 0u) << kept.explain();
      EXPECT_EQ(kept.steps().size(), 3u) << kept.explain();
      eval(outputs);
      EXPECT_EQ(product.to_doubles(), wanted.to_doubles());
      EXPECT_EQ(other.to_doubles(), softmax(apart).to_doubles());
    }
  }
}

// One compute unit: keys are not split, and nothing is merged.
TEST_F(RoundedMakers, Attention) {
  const int64_t rows = 3, heads = 4, kv_heads = 2, positions = 40;
  for (const uint32_t units : {1u, 64u}) {
    const Device device = test::interpreted_device(units);
    for (const int64_t dim : {32, 40}) {
      SCOPED_TRACE(device.id() + ", heads of " + std::to_string(dim));
      const Tensor q = draw(device, {rows, heads, dim}),
                   k = draw(device, {rows, positions, kv_heads, dim}),
                   v = draw(device, {rows, positions, kv_heads, dim}),
                   w = draw(device, {6, heads * dim}, BlockType::q8_0);
      const std::vector<int32_t> words = {0, 1, 40, 0, 1, 1, 1, 1, 2, 1, 17, 2};
      const Tensor spans = from_vector(words, {rows, 4}, device);
      const auto seen = [&] {
        return cached_attention(q, k, v, spans, 1).reshape({rows, heads * dim});
      };
      const Tensor together = linear(seen(), w);
      const Plan plan(std::span(&together, 1));
      EXPECT_EQ(steps_named(plan, "round_rows"), dim == 32 ? 0u : 1u) << plan.explain();
      size_t launches = 0;
      for (const PlanStep& step : plan.steps()) launches += step.launches.size();
      EXPECT_EQ(launches, 2u + (dim != 32)) << plan.explain();
      EXPECT_EQ(together.to_doubles(), linear(seen().eval(), w).to_doubles());
    }
  }
}

struct Gated {
  ElementType pair;
  int64_t rows, width, inner;
};

// The merged gate and up round their results like a separate launch.
TEST_F(RoundedMakers, GateAndUp) {
  // One or several rows per turn, up to the maximum rows of x, several groups, rows that are not
  // multiples of a block.
  const std::vector<Gated> all = {{BlockType::q4_k, 1, 512, 64},  {BlockType::q8_0, 2, 96, 32},
                                  {BlockType::q6_k, 8, 256, 96},  {DType::f16, 1, 40, 64},
                                  {BlockType::q4_k, 5, 256, 160}, {BlockType::q4_k, 1, 2048, 32},
                                  {DType::f16, 1, 64, 36}};
  for (const Device& device : devices()) {
    for (const Gated& one : all) {
      if (!joins_products(device.info(), one.rows)) continue;
      SCOPED_TRACE(device.id() + ", " + one.pair.name() + ", " + std::to_string(one.rows) +
                   " rows, " + std::to_string(one.width) + " to " + std::to_string(one.inner));
      const bool rounds = one.inner % 32 == 0;
      const bool by_itself =
          rounds && (one.rows == 1 || !device.info().capabilities.dependent_launch);
      const ElementType type =
          rounds ? ElementType(BlockType::q8_0) : ElementType(DType::f32);  // of the next product
      const Tensor x = draw(device, {one.rows, one.width}),
                   gate = draw(device, {one.inner, one.width}, one.pair),
                   up = draw(device, {one.inner, one.width}, one.pair),
                   down = draw(device, {9, one.inner}, type);
      const auto gated = [&] { return swiglu(linear(x, gate), linear(x, up)); };
      const Tensor together = linear(gated(), down);
      const Plan plan(std::span(&together, 1));
      EXPECT_EQ(steps_named(plan, "round_rows"),
                size_t{one.pair.is_block()} + (rounds && !by_itself))
          << plan.explain();
      EXPECT_EQ(plan.explain().find("rounded to 8 bits") != std::string::npos, by_itself)
          << plan.explain();
      const std::vector<double> apart = linear(gated().eval(), down).to_doubles();
      EXPECT_EQ(together.to_doubles(), apart);

      // Also compare with f64, except that x and the products in between are rounded to 1/254 of
      // their block's largest.
      const auto doubles = [](const Tensor& w) {
        return (w.type().is_block() ? dequantise(w) : w).to_doubles();
      };
      const std::vector<double> xs = doubles(x), gates = doubles(gate), ups = doubles(up),
                                downs = doubles(down);
      const auto dot = [](const double* a, const double* b, int64_t n) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
        return sum;
      };
      for (int64_t row = 0; row < one.rows; ++row) {
        std::vector<double> inner;
        double size = 0;
        for (int64_t r = 0; r < one.inner; ++r) {
          const double g = dot(&xs[row * one.width], &gates[r * one.width], one.width),
                       u = dot(&xs[row * one.width], &ups[r * one.width], one.width);
          inner.push_back(g / (1 + std::exp(-g)) * u);
          size += inner.back() * inner.back();
        }
        for (int64_t r = 0; r < 9; ++r)
          EXPECT_NEAR(apart[row * 9 + r], dot(inner.data(), &downs[r * one.inner], one.inner),
                      0.05 * std::sqrt(size))
              << row << ", " << r;
      }
    }
  }
}

// A device that rejects the fully merged kernel gets less merged ones.
TEST_F(RoundedMakers, GateAndUpFallApart) {
  // Each refuses one more merge than the entry before; steps: the pair or two products, down, and
  // the rounding of rows for each.
  for (const auto& [refused, steps] : {std::pair("", 3), {"_rounds", 4}, {"_pair", 5}}) {
    SCOPED_TRACE(refused);
    const Device device = test::interpreted_device(16, refused);
    const Tensor x = draw(device, {2, 64}), gate = draw(device, {32, 64}, BlockType::q8_0),
                 up = draw(device, {32, 64}, BlockType::q8_0),
                 down = draw(device, {9, 32}, BlockType::q8_0);
    const auto gated = [&] { return swiglu(linear(x, gate), linear(x, up)); };
    const Tensor together = linear(gated(), down);
    const Plan plan(std::span(&together, 1));
    EXPECT_EQ(plan.steps().size(), static_cast<size_t>(steps)) << plan.explain();
    EXPECT_EQ(together.to_doubles(), linear(gated().eval(), down).to_doubles());
  }
}

struct Between {
  ElementType before, after;
  int64_t k, width;
};

// A norm between one-row products is folded into them.
TEST_F(RoundedMakers, NormsBetweenProducts) {
  const ElementType q8 = BlockType::q8_0, q4 = BlockType::q4_k, q6 = BlockType::q6_k,
                    f16 = DType::f16;
  // In the last, a lane has more than one group of four sums of squares.
  const std::vector<Between> all = {
      {q8, q8, 64, 128}, {q4, q6, 512, 256}, {f16, q4, 72, 768}, {q8, q8, 32, 8448}};
  for (const Device& device : devices()) {
    if (!joins_products(device.info(), 1)) continue;
    for (const Between& one : all) {
      SCOPED_TRACE(device.id() + ", " + one.before.name() + " and " + one.after.name() + ", " +
                   std::to_string(one.k) + " to " + std::to_string(one.width));
      const Tensor x = draw(device, {1, one.k}), residual = draw(device, {1, one.width}),
                   scale = draw(device, {one.width}),
                   w = draw(device, {one.width, one.k}, one.before);
      std::vector<Tensor> after;
      for (const int64_t n : {33, 32, 39, 64, 64, 37})
        after.push_back(draw(device, {n, one.width}, one.after));
      const auto twice = [](const Tensor& y) {
        return y.unsqueeze(0).expand({2, y.size(0), y.size(1)}).contiguous();
      };
      const auto made = [&](const Tensor& h, const Tensor& normed, size_t how) {
        std::vector<Tensor> results;
        if (how == 0)  // side by side
          for (size_t i = 0; i < 3; ++i) results.push_back(twice(linear(normed, after[i])));
        else if (how == 1)  // paired
          results.push_back(twice(swiglu(linear(normed, after[3]), linear(normed, after[4]))));
        else
          results.push_back(linear(normed, after[5]));
        results.push_back(twice(h));
        return results;
      };
      const Tensor h = (linear(x, w) + residual).eval(), normed = rms_norm(h, scale, 1e-5).eval();
      const std::vector<double> hs = h.to_doubles(), scales = scale.to_doubles();
      double squares = 0;
      for (const double each : hs) squares += each * each;
      const double s = 1 / std::sqrt(squares / static_cast<double>(one.width) + 1e-5);
      for (size_t how = 0; how < 3; ++how) {
        SCOPED_TRACE(how);
        const Tensor between = linear(x, w) + residual;
        std::vector<Tensor> together = made(between, rms_norm(between, scale, 1e-5), how);
        const Plan plan(together);
        EXPECT_EQ(steps_named(plan, "rms_norm"), 0u) << plan.explain();
        EXPECT_EQ(steps_named(plan, "matmul and norm"), 1u) << plan.explain();
        eval(together);
        const std::vector<Tensor> apart = made(h, normed, how);
        for (size_t i = 0; i < apart.size(); ++i) {
          SCOPED_TRACE(i);
          expect_close(together[i].to_doubles(), apart[i].to_doubles());
        }
        EXPECT_EQ(together.back().to_doubles(), apart.back().to_doubles());
        if (how != 2) continue;
        // Also compare with f64, except for the rounding of the norm's rows, up to half a step of a
        // block of 32 per element: a variance of step^2 / 12.
        const std::vector<double> weights = dequantise(after[5]).to_doubles(),
                                  results = together[0].to_doubles();
        std::vector<double> row(hs.size()), steps(hs.size() / 32);
        for (size_t c = 0; c < row.size(); ++c) {
          row[c] = hs[c] * scales[c] * s;
          steps[c / 32] = std::max(steps[c / 32], std::abs(row[c]) / 127);
        }
        for (size_t n = 0; n < results.size(); ++n) {
          double wanted = 0, variance = 0;
          for (size_t c = 0; c < row.size(); ++c) {
            const double weight = weights[n * row.size() + c];
            wanted += weight * row[c];
            variance += std::pow(weight * steps[c / 32], 2) / 12;
          }
          EXPECT_NEAR(results[n], wanted, 6 * std::sqrt(variance)) << n;
        }
      }
    }
  }
}

TEST_F(RoundedMakers, OnlyNormsThatProductsCanDo) {
  const Device device = test::interpreted_device(16);
  const auto folded = [&](const Device& where, int64_t rows, int64_t width, int how) {
    const ElementType type = how == 1 ? ElementType(DType::f32) : ElementType(BlockType::q8_0);
    const Tensor x = draw(where, {rows, 64}), w = draw(where, {width, 64}, BlockType::q8_0),
                 scale = draw(where, {width}), v = draw(where, {41, width}, type);
    const Tensor h = linear(x, w), normed = how == 2 ? layer_norm(h, scale) : rms_norm(h, scale);
    std::vector<Tensor> outputs = {linear(normed, v)};
    if (how == 3) outputs.push_back(softmax(normed));
    if (how == 4) outputs.push_back(h);
    const size_t count = steps_named(Plan(outputs), "matmul and norm");
    const std::vector<double> wanted =
        linear((how == 2 ? layer_norm(h.eval(), scale) : rms_norm(h.eval(), scale)).eval(), v)
            .to_doubles();
    expect_close(outputs[0].to_doubles(), wanted);
    return count;
  };
  EXPECT_EQ(folded(device, 1, 128, 0), 1u);
  EXPECT_EQ(folded(device, 2, 128, 0), 0u) << "rows";
  EXPECT_EQ(folded(device, 1, 96, 0), 0u) << "width";
  EXPECT_EQ(folded(device, 1, 128, 1), 0u) << "plain weights";
  EXPECT_EQ(folded(device, 1, 128, 2), 0u) << "centred";
  EXPECT_EQ(folded(device, 1, 128, 3), 0u) << "the normed rows have another user";
  EXPECT_EQ(folded(device, 1, 128, 4), 0u) << "asked for";
  EXPECT_EQ(folded(test::interpreted_device(16, "_unscaled"), 1, 128, 0), 0u) << "refused";
  EXPECT_EQ(folded(test::interpreted_device(16, "_scales"), 1, 128, 0), 0u) << "refused";
}

// Norm; q, k and v with rope and cache; attention; output; gate and up; down.
TEST_F(RoundedMakers, ALayerOfADecodeStepIsSixLaunches) {
  for (const bool overlaps : {false, true}) {
    const Device device = test::interpreted_device(32, {}, 64, overlaps);
    const int64_t width = 128, heads = 4, dim = 32, inner = 96;
    const auto weight = [&](int64_t n, int64_t k) { return draw(device, {n, k}, BlockType::q8_0); };
    const Tensor x = draw(device, {1, width}), first = draw(device, {width}),
                 second = draw(device, {width}), k_cache = draw(device, {1, 24, heads, dim}),
                 v_cache = draw(device, {1, 24, heads, dim}), wq = weight(width, width),
                 wk = weight(width, width), wv = weight(width, width), wo = weight(width, width),
                 gate = weight(inner, width), up = weight(inner, width),
                 down = weight(width, inner);
    const std::vector<int32_t> place = {17, 17}, span = {0, 1, 18, 0};
    const Tensor places = from_vector(place, {1, 2}, device),
                 spans = from_vector(span, {1, 4}, device), frequencies = draw(device, {dim / 2});
    // apart: every product's rows are evaluated first.
    const auto layer = [&](bool apart) {
      const auto rows = [&](const Tensor& y) { return apart ? y.eval() : y; };
      const auto by_head = [&](const Tensor& y) { return y.reshape({1, heads, dim}); };
      const Tensor in = rows(rms_norm(x, first));
      const CachedRows cached =
          rope_to_cache(by_head(linear(in, wq)), by_head(linear(in, wk)), by_head(linear(in, wv)),
                        places, frequencies, {}, k_cache, v_cache);
      const Tensor seen = rows(
          cached_attention(cached.q, cached.k_cache, cached.v_cache, spans, 1).reshape({1, width}));
      const Tensor h = rows(x + linear(seen, wo)), normed = rows(rms_norm(h, second));
      return h + linear(rows(swiglu(linear(normed, gate), linear(normed, up))), down);
    };
    const Tensor together = layer(false);
    const Plan plan(std::span(&together, 1));
    size_t launches = 0;
    for (const PlanStep& step : plan.steps()) launches += step.launches.size();
    EXPECT_EQ(launches, 6u) << plan.explain();
    expect_close(together.to_doubles(), layer(true).to_doubles());
  }
}

TEST_F(RoundedMakers, OnlyWhereRowsAreRounded) {
  for (const Device& device : devices()) {
    if (device.info().is_cpu || compiles_slowly(device)) continue;
    SCOPED_TRACE(device.id());
    const Tensor x = draw(device, {2, 64}), many = draw(device, {9, 64}),
                 scale = draw(device, {64}), w = draw(device, {5, 64}, BlockType::q8_0),
                 plain = draw(device, {5, 64});
    const auto rounded = [&](const std::vector<Tensor>& outputs) {
      return Plan(outputs).explain().find("rounded to 8 bits") != std::string::npos;
    };
    const Tensor normed = rms_norm(x, scale);
    EXPECT_TRUE(rounded({linear(normed, w)}));
    EXPECT_FALSE(rounded({linear(normed, w), normed})) << "asked for";
    EXPECT_FALSE(rounded({linear(normed, plain)})) << "plain weights";
    EXPECT_FALSE(rounded({linear(rms_norm(many, scale), w)})) << "many rows";
    EXPECT_FALSE(rounded({linear(normed.slice(0, 0, 1), w)})) << "only some rows";
  }
}

}  // namespace
}  // namespace prism
