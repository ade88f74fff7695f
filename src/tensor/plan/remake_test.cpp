// Tests that plans make cheap results again instead of keeping them, and that the numbers stay.
#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "prism/grad.h"
#include "prism/ops.h"
#include "support/ops/random_graph.h"
#include "support/seed.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

constexpr int64_t kRows = 48, kWidth = 32, kInner = 80, kLayers = 5;
constexpr uint64_t kMatrix = kRows * kWidth * 4;

PlanOptions remaking(uint64_t above, size_t distance = 0, double traffic = 1e9) {
  PlanOptions options;
  options.remake_above = above;
  options.remake_distance = distance;
  options.remake_traffic = traffic;
  return options;
}
const PlanOptions kNever = remaking(UINT64_MAX);

std::vector<std::vector<double>> results_of(Plan& plan, std::span<const Tensor> outputs) {
  plan.run();
  std::vector<std::vector<double>> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::vector<float> values(static_cast<size_t>(outputs[i].elements()));
    read_storage(*plan.output(i), 0, std::as_writable_bytes(std::span(values)));
    results.emplace_back(values.begin(), values.end());
  }
  return results;
}

uint64_t temporaries(const Plan& plan) { return plan.arena_bytes(Device::cpu()); }

size_t steps_named(const Plan& plan, std::string_view name) {
  return static_cast<size_t>(
      std::ranges::count_if(plan.steps(), [&](const PlanStep& each) { return each.name == name; }));
}

class Remake : public testing::Test {
 protected:
  Tensor draw(const Shape& shape, DType type = DType::f32) {
    std::normal_distribution<float> normal(0, 0.3f);
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& each : values) each = normal(random_);
    return cast(from_vector(values, shape, Device::cpu()), type).eval();
  }
  // Weights of layers as language models have them: a norm, then silu(gate) * up.
  void SetUp() override {
    for (int64_t i = 0; i < kLayers; ++i) {
      for (const Shape& shape :
           {Shape{kWidth, kInner}, Shape{kWidth, kInner}, Shape{kInner, kWidth}})
        weights_.push_back(draw(shape).set_requires_grad());
      norms_.push_back(draw({kWidth}));
    }
    input_ = draw({kRows, kWidth});
  }
  // The gradients of all weights, the last ones first, as a step of training asks for them.
  std::vector<Tensor> slopes() {
    Tensor x = input_ * 1.0;
    for (size_t i = 0; i < kLayers; ++i) {
      const Tensor h = rms_norm(x, norms_[i]);
      x = x + matmul(silu(matmul(h, weights_[3 * i])) * matmul(h, weights_[3 * i + 1]),
                     weights_[3 * i + 2]);
    }
    std::vector<Tensor> all = gradients(mean(square(x)), weights_);
    std::ranges::reverse(all);
    return all;
  }

  std::mt19937 random_{test_seed()};
  std::vector<Tensor> weights_, norms_;
  Tensor input_;
};

TEST_F(Remake, SavesMemoryAndChangesNoNumber) {
  const std::vector<Tensor> outputs = slopes();
  Plan kept(outputs, {}, kNever), again(outputs, {}, remaking(1));
  // The norm, silu(gate) and the product of a layer are made again; its input, gate and up stay.
  const uint64_t saved = (kLayers - 1) * (kRows * (kWidth + 2 * kInner) * 4);
  EXPECT_LE(temporaries(again), temporaries(kept) - saved + 4 * kMatrix) << again.explain();
  EXPECT_EQ(steps_named(again, "rms_norm"), 2 * steps_named(kept, "rms_norm"));
  EXPECT_EQ(steps_named(again, "matmul"), steps_named(kept, "matmul"));
  const auto wanted = results_of(kept, outputs), found = results_of(again, outputs);
  for (size_t i = 0; i < wanted.size(); ++i)
    for (size_t n = 0; n < wanted[i].size(); ++n)
      ASSERT_NEAR(found[i][n], wanted[i][n], 1e-6 * (1 + std::abs(wanted[i][n]))) << i << " " << n;
}

TEST_F(Remake, LeavesSmallPlansNearUsesAndCostlyOnesAlone) {
  const std::vector<Tensor> outputs = slopes();
  Plan kept(outputs, {}, kNever), usual(outputs), near(outputs, {}, remaking(1, 1000)),
      costly(outputs, {}, remaking(1, 0, 0));
  for (const Plan* each : {&usual, &near}) {
    EXPECT_EQ(temporaries(*each), temporaries(kept));
    EXPECT_EQ(each->steps().size(), kept.steps().size());
  }
  // What is fused into its users costs nothing.
  EXPECT_EQ(steps_named(costly, "rms_norm"), steps_named(kept, "rms_norm"));
  EXPECT_LT(costly.steps().size(), kept.steps().size());
}

TEST_F(Remake, KeepsANarrowTermInsteadOfAWideSum) {
  // Sums of f32 with results of bf16, each used again at the end.
  const Tensor w = draw({kWidth, kWidth}, DType::bf16);
  std::vector<Tensor> sums;
  Tensor x = matmul(input_, cast(w, DType::f32));
  for (int i = 0; i < 8; ++i) {
    x = x + cast(matmul(cast(x, DType::bf16), w), DType::f32);
    sums.push_back(x);
  }
  Tensor total = matmul(x, cast(w, DType::f32));
  for (size_t i = sums.size(); i-- > 0;) total = matmul(total * sums[i], cast(w, DType::f32));
  const std::vector<Tensor> outputs = {total};
  Plan kept(outputs, {}, kNever), again(outputs, {}, remaking(1));
  EXPECT_LE(temporaries(again), temporaries(kept) - 3 * kMatrix / 2) << again.explain();
  // A kept term is rounded to bf16, as its type says.
  const auto wanted = results_of(kept, outputs)[0], found = results_of(again, outputs)[0];
  double error = 0, size = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    error += (found[i] - wanted[i]) * (found[i] - wanted[i]);
    size += wanted[i] * wanted[i];
  }
  EXPECT_LT(error, 1e-3 * size);
}

TEST_F(Remake, RandomGraphsGiveTheSame) {
  test::Engine engine(test::seed_of_run());
  size_t more = 0;
  for (int graph = 0; graph < 60; ++graph) {
    SCOPED_TRACE(graph);
    const auto outputs = test::random_graph(engine, test::random_inputs(engine, Device::cpu()));
    Plan kept(outputs, {}, kNever), again(outputs, {}, remaking(1));
    more += again.explain() != kept.explain();
    const auto wanted = results_of(kept, outputs), found = results_of(again, outputs);
    for (size_t i = 0; i < wanted.size(); ++i)
      for (size_t n = 0; n < wanted[i].size(); ++n)
        ASSERT_NEAR(found[i][n], wanted[i][n], 1e-5 * (1 + std::abs(wanted[i][n])))
            << again.explain();
  }
  EXPECT_GT(more, 5u);
}

}  // namespace
}  // namespace prism
