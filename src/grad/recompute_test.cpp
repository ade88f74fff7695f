// Tests that a recomputed part has the same gradients and takes less memory.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "prism/compile.h"
#include "prism/error.h"
#include "prism/grad.h"
#include "prism/ops.h"
#include "support/seed.h"

namespace prism {
namespace {

constexpr int64_t kWidth = 32, kRows = 64, kLayers = 6;

class Recompute : public testing::Test {
 protected:
  Tensor draw(const Shape& shape) {
    std::normal_distribution<float> normal(0, 0.3f);
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    for (float& each : values) each = normal(random_);
    return from_vector(values, shape, Device::cpu());
  }
  void SetUp() override {
    for (int64_t i = 0; i < 2 * kLayers; ++i) weights_.push_back(draw({kWidth, kWidth}));
    input_ = draw({kRows, kWidth});
  }

  // Residual layers with a softmax, whose gradient uses its result, and a view of the input.
  Tensor layer(const Tensor& x, const Tensor& a, const Tensor& b) {
    const Tensor inner = softmax(matmul(x, a), -1) * tanh(x.slice(1, 0, 1));
    return x + matmul(tanh(inner * 3.0), b);
  }
  ValueAndGrad run(bool again) {
    return value_and_grad([&](std::span<const Tensor> w) { return loss(w, again); })(weights_);
  }
  Tensor loss(std::span<const Tensor> w, bool again) {
    Tensor x = input_ * 1.0;
    for (size_t i = 0; i < w.size(); i += 2) {
      const auto f = [&](std::span<const Tensor> in) { return layer(in[0], w[i], w[i + 1]); };
      x = again ? recompute(f, {x}) : layer(x, w[i], w[i + 1]);
    }
    return mean(square(x));
  }
  uint64_t temporaries(bool again) {
    std::vector<Tensor> outputs = run(again).gradients;
    uint64_t bytes = 0;
    for (const PlanMemory& each : estimate_memory(outputs)) bytes += each.temporaries;
    return bytes;
  }

  std::mt19937 random_{test_seed()};
  std::vector<Tensor> weights_;
  Tensor input_;
};

TEST_F(Recompute, GivesTheSameNumbers) {
  const ValueAndGrad kept = run(false), again = run(true);
  EXPECT_EQ(kept.value.item(), again.value.item());
  for (size_t i = 0; i < weights_.size(); ++i)
    EXPECT_EQ(kept.gradients[i].to_doubles(), again.gradients[i].to_doubles()) << "weight " << i;
}

TEST_F(Recompute, TakesLessMemory) {
  const uint64_t kept = temporaries(false), again = temporaries(true);
  EXPECT_LT(again * 5, kept * 3) << again << " of " << kept;
}

TEST_F(Recompute, DrawsTheSameRandomNumbers) {
  const auto f = [](std::span<const Tensor> x) {
    return x[0] * rand(x[0].shape(), DType::f32, Device::cpu());
  };
  // d/dx (x r)^2 = 2 x r^2, which the value shows: sum of (x r)^2.
  const ValueAndGrad found = value_and_grad([&](std::span<const Tensor> in) {
    return sum(square(recompute(f, {in[0] * 1.0})));
  })({input_});
  EXPECT_NEAR((found.gradients[0] * input_).sum().item(), 2 * found.value.item(),
              1e-4 * std::abs(found.value.item()));
}

TEST_F(Recompute, TwiceInsideAndAtTheEdge) {
  const auto square_of = [](std::span<const Tensor> in) { return in[0] * in[0]; };
  const auto fourth = [&](std::span<const Tensor> in) {
    return recompute(square_of, {square_of(in)});
  };
  const auto f = [&](std::span<const Tensor> in) { return sum(recompute(fourth, in)); };
  const std::vector<double> x = input_.to_doubles(), g = grad(f)({input_})[0].to_doubles();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(g[i], 4 * x[i] * x[i] * x[i], 1e-5 * (1 + std::abs(g[i])));
  // The second derivative goes through the copies as well.
  const auto slope = [&](std::span<const Tensor> in) { return sum(grad(f)(in)[0]); };
  const std::vector<double> second = grad(slope)({input_})[0].to_doubles();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(second[i], 12 * x[i] * x[i], 1e-4 * (1 + second[i]));
  // A part that does nothing, and one that gives its input in another shape.
  const auto same = [](std::span<const Tensor> in) { return in[0]; };
  const auto turned = [](std::span<const Tensor> in) { return in[0].transpose(); };
  EXPECT_EQ(recompute(same, {input_}).to_doubles(), x);
  EXPECT_EQ(recompute(turned, {input_}).to_doubles(), input_.transpose().to_doubles());
  EXPECT_EQ(grad([&](std::span<const Tensor> in) { return sum(recompute(turned, in) * 2.0); })(
                {input_})[0]
                .to_doubles(),
            std::vector<double>(x.size(), 2.0));
  EXPECT_THROW(recompute([](std::span<const Tensor>) { return Tensor(); }, {input_}), Error);
}

}  // namespace
}  // namespace prism
