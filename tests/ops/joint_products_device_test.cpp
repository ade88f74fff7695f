// Tests that products of a few rows with several matrices become one step with the results of
// separate products.
#include <array>
#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "ops/products/joint_products.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/matmul.h"
#include "prism/ops/quantise.h"
#include "prism/ops/softmax.h"
#include "support/devices/devices.h"
#include "support/ops/drawn.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

// Draws weights of any type and plans with them.
class JointProducts : public test::DrawnTensors {
 protected:
  static size_t steps_named(const Plan& plan, std::string_view name) {
    size_t count = 0;
    for (const PlanStep& step : plan.steps()) count += step.name == name;
    return count;
  }
};

// A consumer that does not merge with products.
Tensor used(const Tensor& x) {
  return x.unsqueeze(0).expand({2, x.size(0), x.size(1)}).contiguous();
}

struct Three {
  const char* what;
  std::array<ElementType, 3> types;
  int64_t rows, k;
  std::array<int64_t, 3> n;
};

TEST_F(JointProducts, QueriesKeysAndValuesAreOneStep) {
  const ElementType f32 = DType::f32, f16 = DType::f16, q8 = BlockType::q8_0, q4 = BlockType::q4_k,
                    q6 = BlockType::q6_k;
  const std::vector<Three> all = {{"f32", {f32, f32, f32}, 1, 64, {64, 32, 32}},
                                  {"f16", {f16, f16, f16}, 2, 40, {24, 7, 3}},
                                  {"q8_0", {q8, q8, q8}, 1, 96, {33, 5, 5}},
                                  {"q4_k and q6_k", {q4, q4, q6}, 2, 512, {40, 17, 17}}};
  for (const Device& device : test::every_device()) {
    const bool joins = joins_products(device.info(), 2);
    if (!joins && !device.info().is_cpu) continue;
    for (const Three& one : all) {
      SCOPED_TRACE(device.id() + ", " + one.what);
      const Tensor x = draw(device, {one.rows, one.k});
      std::vector<Tensor> w;
      for (size_t i = 0; i < 3; ++i) w.push_back(draw(device, {one.n[i], one.k}, one.types[i]));
      std::vector<Tensor> together;
      for (const Tensor& each : w) together.push_back(used(linear(x, each)));
      const Plan plan(together);
      EXPECT_EQ(steps_named(plan, "matmul side by side"), joins ? 1u : 0u) << plan.explain();
      EXPECT_EQ(steps_named(plan, "matmul"), joins ? 0u : 3u) << plan.explain();
      eval(together);
      for (size_t i = 0; i < 3; ++i)
        EXPECT_EQ(together[i].to_doubles(), used(linear(x, w[i]).eval()).to_doubles()) << i;
    }
  }
}

// Biases need more buffers than some devices have: as many products are merged as fit.
TEST_F(JointProducts, BiasesComeAlong) {
  for (const Device& device : test::every_device()) {
    if (!joins_products(device.info(), 2)) continue;
    SCOPED_TRACE(device.id());
    const Tensor x = draw(device, {1, 48});
    std::vector<Tensor> w, b, together;
    for (const int64_t n : {20, 6, 9}) {
      w.push_back(draw(device, {n, 48}, DType::f16));
      b.push_back(draw(device, {n}));
      together.push_back(used(linear(x, w.back(), b.back())));
    }
    const Plan plan(together);
    EXPECT_EQ(steps_named(plan, "matmul side by side"), 1u) << plan.explain();
    const bool all_fit = device.info().capabilities.max_buffers >= 10;
    EXPECT_EQ(steps_named(plan, "matmul"), all_fit ? 0u : 1u) << plan.explain();
    eval(together);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_EQ(together[i].to_doubles(), used(linear(x, w[i], b[i]).eval()).to_doubles()) << i;
  }
}

TEST_F(JointProducts, GateAndUpAreOneStep) {
  const std::vector<std::pair<ElementType, int64_t>> all = {
      {DType::f32, 1}, {DType::f16, 2}, {BlockType::q8_0, 1}, {BlockType::q4_k, 1}};
  for (const Device& device : test::every_device()) {
    if (!joins_products(device.info(), 2) && !device.info().is_cpu) continue;
    for (const auto& [type, rows] : all) {
      SCOPED_TRACE(device.id() + ", " + type.name() + ", rows " + std::to_string(rows));
      const bool joins = joins_products(device.info(), rows), swish = rows != 2;
      const Tensor x = draw(device, {rows, 256}), gate = draw(device, {37, 256}, type),
                   up = draw(device, {37, 256}, type);
      const auto gated = [&](const Tensor& u) {
        const Tensor g = linear(x, gate);
        return swish ? swiglu(g, u) : geglu(g, u);
      };
      const Tensor together = gated(linear(x, up));
      const Plan plan(std::span(&together, 1));
      EXPECT_EQ(steps_named(plan, "matmul of two"), joins ? 1u : 0u) << plan.explain();
      EXPECT_EQ(steps_named(plan, "matmul"), joins ? 0u : 2u) << plan.explain();
      EXPECT_EQ(together.to_doubles(), gated(linear(x, up).eval()).to_doubles());
    }
  }
}

// The same for rows routed to experts, also with biases, each of which adds two inputs to the
// chain.
TEST_F(JointProducts, GateAndUpOfExpertsAreOneStep) {
  struct Pair {
    ElementType type;
    int64_t rows;
    bool bias;
  };
  const std::vector<Pair> all = {{DType::f32, 1, true},
                                 {DType::f16, 2, false},
                                 {BlockType::q8_0, 1, false},
                                 {BlockType::mxfp4, 2, true},
                                 {BlockType::q4_k, 40, false}};
  constexpr int64_t kExperts = 6, kUsed = 3, kOut = 37, kIn = 256;
  for (const Device& device : test::every_device()) {
    if (!joins_products(device.info(), 1) && !device.info().is_cpu) continue;
    for (const Pair& one : all) {
      SCOPED_TRACE(device.id() + ", " + one.type.name() + ", rows " + std::to_string(one.rows));
      const bool joins = joins_products(device.info(), 1) && one.rows < 40;
      std::vector<int32_t> chosen(static_cast<size_t>(one.rows * kUsed));
      for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = static_cast<int32_t>(i * 5 % kExperts);
      const Tensor ids = from_vector(chosen, {one.rows, kUsed}, device);
      const Tensor x = draw(device, {one.rows, kIn});
      const Shape matrices = {kExperts, kOut, kIn};
      const Tensor gate = draw(device, matrices, one.type), up = draw(device, matrices, one.type);
      Tensor gate_bias, up_bias;
      if (one.bias)
        gate_bias = draw(device, {kExperts, kOut}), up_bias = draw(device, {kExperts, kOut});
      const auto gated = [&](const Tensor& u) {
        const Tensor g = expert_matmul(x, gate, ids, gate_bias);
        if (!one.bias) return swiglu(g, u);
        const Tensor held = minimum(g, 0.5);
        return held * sigmoid(held * 1.702) * (clamp(u, -0.5, 0.5) + 1);
      };
      const Tensor u = expert_matmul(x, up, ids, up_bias), together = gated(u);
      const Plan plan(std::span(&together, 1));
      EXPECT_EQ(steps_named(plan, "expert_matmul of two"), joins ? 1u : 0u) << plan.explain();
      EXPECT_EQ(steps_named(plan, "expert_matmul"), joins ? 0u : 2u) << plan.explain();
      const std::vector<double> results = together.to_doubles();
      const Tensor alone = expert_matmul(x, up, ids, up_bias).eval();
      EXPECT_EQ(results, gated(alone).to_doubles());
    }
  }
}

// The token shift of RWKV: parts of one tensor are multiplied by wide and by narrow matrices, and
// the narrow results by others, whose rows are shorter.
TEST_F(JointProducts, ProductsOfOtherRowsAreOneStep) {
  const std::vector<std::pair<ElementType, int64_t>> all = {{DType::f32, 1}, {DType::f16, 2}};
  constexpr int64_t kWide = 128, kNarrow = 32, kInputs = 3;
  for (const Device& device : test::every_device()) {
    const bool joins = joins_products(device.info(), 2);
    if (!joins && !device.info().is_cpu) continue;
    for (const auto& [type, rows] : all) {
      SCOPED_TRACE(device.id() + ", " + type.name() + ", rows " + std::to_string(rows));
      const Tensor x = draw(device, {kInputs, rows, kWide}), shift = draw(device, {kWide});
      std::vector<Tensor> wide, narrow, back;
      for (int64_t i = 0; i < kInputs; ++i) {
        wide.push_back(draw(device, {kWide, kWide}, type));
        narrow.push_back(draw(device, {i == 0 ? 2 * kNarrow : kNarrow, kWide}, type));
        back.push_back(draw(device, {40 + i, i == 0 ? 2 * kNarrow : kNarrow}, type));
      }
      const auto outputs = [&](bool apart) {
        const auto made = [&](const Tensor& y) { return apart ? y.eval() : y; };
        const Tensor mixed = made(x + shift);
        std::vector<Tensor> results;
        for (int64_t i = 0; i < kInputs; ++i) {
          const auto at = static_cast<size_t>(i);
          const Tensor row = mixed.select(0, i);
          if (i == 1) results.push_back(used(made(linear(row, wide[at]))));
          results.push_back(used(made(linear(tanh(made(linear(row, narrow[at]))), back[at]))));
        }
        return results;
      };
      const std::vector<Tensor> together = outputs(false);
      const Plan plan(together);
      const bool all_fit = device.info().capabilities.max_buffers >= 9;
      if (!joins || all_fit) {
        EXPECT_EQ(steps_named(plan, "matmul side by side"), joins ? 2u : 0u) << plan.explain();
        EXPECT_EQ(steps_named(plan, "matmul"), joins ? 0u : 7u) << plan.explain();
      }
      eval(together);
      const std::vector<Tensor> apart = outputs(true);
      for (size_t i = 0; i < apart.size(); ++i) {
        const std::vector<double> got = together[i].to_doubles(), wanted = apart[i].to_doubles();
        ASSERT_EQ(got.size(), wanted.size());
        for (size_t n = 0; n < got.size(); ++n)
          ASSERT_NEAR(got[n], wanted[n], 1e-5 * (1 + std::abs(wanted[n]))) << i << ", " << n;
      }
    }
  }
}

// Products stay separate if an operand is not available when the first of them runs, if there are
// too many rows, or if a result is an output of the plan.
TEST_F(JointProducts, OnlyWhatCanBeJoined) {
  for (const Device& device : test::every_device()) {
    if (!joins_products(device.info(), 2)) continue;
    SCOPED_TRACE(device.id());
    const Tensor w = draw(device, {16, 16}), v = draw(device, {16, 16});
    const auto joined = [&](std::initializer_list<Tensor> outputs) {
      const Plan plan(std::span(outputs.begin(), outputs.size()));
      return steps_named(plan, "matmul side by side") + steps_named(plan, "matmul of two");
    };
    const Tensor x = draw(device, {2, 16}), many = draw(device, {9, 16});
    EXPECT_EQ(joined({linear(x, w), linear(x, v)}), 0u) << "asked for";
    EXPECT_EQ(joined({used(linear(many, w)), used(linear(many, v))}), 0u) << "many rows";
    EXPECT_EQ(joined({used(linear(x, w)), used(linear(many.slice(0, 0, 1), v))}), 0u) << "rows";
    const Tensor first = linear(x, w), twice = used(first).slice(0, 0, 1).reshape({2, 16}),
                 second = linear(x, v) + softmax(twice);
    EXPECT_EQ(joined({used(second)}), 0u) << "one needs the other";
  }
}

}  // namespace
}  // namespace prism
