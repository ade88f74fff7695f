// Tests scalars with gradients on every device found: micrograd's example, and networks.
#include <cmath>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "prism/nn/scalar.h"
#include "prism/ops/create.h"
#include "support/devices/devices.h"

namespace prism {
namespace {

using nn::Value;

TEST(ScalarsDevice, MicrogradsExample) {
  for (const Device& device : test::every_device()) {
    const Value a(-4.0, device), b(2.0, device);
    Value c = a + b, d = a * b + pow(b, 3);
    c += c + 1;
    c += 1 + c + (-a);
    d += d * 2 + relu(b + a);
    d += 3 * d + relu(b - a);
    const Value e = c - d, f = pow(e, 2);
    Value g = f / 2.0;
    g += 10.0 / f;
    EXPECT_NEAR(g.data(), 24.7041, 5e-5) << device.id();
    g.backward();
    EXPECT_NEAR(a.grad(), 138.8338, 5e-5 * 4) << device.id();
    EXPECT_NEAR(b.grad(), 645.5773, 5e-5 * 4) << device.id();
    EXPECT_EQ(g.grad(), 1) << device.id();
  }
}

// Every function's derivative against a difference quotient in double precision.
TEST(ScalarsDevice, FunctionsHaveTheirDerivatives) {
  const auto f = [](const auto& x, const auto& y) {
    return exp(x / y) + log(y) * tanh(x - y) + pow(y, -1.5) + relu(x) * 2.0 - relu(-x) / 3.0 +
           (1.0 - x) * y;
  };
  const auto plain = [](double x, double y) {
    return std::exp(x / y) + std::log(y) * std::tanh(x - y) + std::pow(y, -1.5) +
           2 * std::max(x, 0.0) - std::max(-x, 0.0) / 3 + (1 - x) * y;
  };
  for (const Device& device : test::every_device()) {
    for (const auto& [x0, y0] : {std::pair(0.7, 1.3), std::pair(-0.4, 0.6)}) {
      const Value x(x0, device), y(y0, device);
      const Value z = f(x, y);
      z.backward();
      constexpr double kStep = 1e-5;
      EXPECT_NEAR(z.data(), plain(x0, y0), 1e-5) << device.id();
      EXPECT_NEAR(x.grad(), (plain(x0 + kStep, y0) - plain(x0 - kStep, y0)) / (2 * kStep), 1e-4)
          << device.id();
      EXPECT_NEAR(y.grad(), (plain(x0, y0 + kStep) - plain(x0, y0 - kStep)) / (2 * kStep), 1e-4)
          << device.id();
    }
  }
}

TEST(Scalars, AccumulateAndCompare) {
  const Device cpu = Device::cpu();
  Value x(3, cpu);
  const Value y = x * x + x;  // used three times
  y.backward();
  EXPECT_EQ(x.grad(), 7);
  y.backward();
  EXPECT_EQ(x.grad(), 14) << "gradients accumulate";
  x.zero_grad();
  EXPECT_EQ(x.grad(), 0);
  EXPECT_TRUE(x < y && y > x && x <= x && x >= x && x != y && x == x);
  x.set_data(1);
  EXPECT_EQ((x * 2.0).data(), 2);
  Value z = y;
  EXPECT_THROW(z.set_data(1), Error);
  EXPECT_THROW(nn::MLP(2, {}, cpu), Error);
  EXPECT_THROW(nn::MLP(3, {1}, cpu)(std::vector<Value>{x}), Error);
  // A chain longer than the stack is deep.
  Value sum(0, cpu);
  for (int i = 0; i < 300'000; ++i) sum += 1.0;
  EXPECT_EQ(sum.data(), 300'000);
}

TEST(ScalarsDevice, DoNotMixDevices) {
  const std::vector<Device> devices = test::every_device();
  for (const Device& device : devices) {
    const Value a(2, Device::cpu()), b(3, device);
    if (device == Device::cpu()) continue;
    EXPECT_THROW(a + b, Error);
    EXPECT_EQ((a.to(device) + b).data(), 5);
    EXPECT_EQ(b.to(Device::cpu()).device(), Device::cpu());
  }
}

// Two interleaved half circles of 50 points each, as scikit-learn makes them.
struct Moons {
  std::vector<std::array<double, 2>> points;
  std::vector<double> labels;
  explicit Moons(uint64_t key) {
    const std::vector<double> noise =
        normal({200}, key, 0, 0.1, DType::f32, Device::cpu()).to_doubles();
    for (size_t i = 0; i < 100; ++i) {
      const double angle = M_PI * static_cast<double>(i / 2) / 49;
      const bool lower = i % 2 == 1;
      const double x = lower ? 1 - std::cos(angle) : std::cos(angle);
      const double y = lower ? 0.5 - std::sin(angle) : std::sin(angle);
      points.push_back({x + noise[2 * i], y + noise[2 * i + 1]});
      labels.push_back(lower ? 1 : -1);
    }
  }
};

// Steps as in micrograd's demo: hinge loss, decay, a falling learning rate. Returns the accuracy.
double train_moons(const Device& device, int steps) {
  const Moons moons(1);
  seed(1337);
  nn::MLP model(2, {16, 16, 1}, device);
  double accuracy = 0;
  for (int step = 0; step < steps; ++step) {
    Value loss(0, device);
    std::vector<Value> scores;
    for (size_t i = 0; i < moons.points.size(); ++i) {
      const std::vector<Value> x = {Value(moons.points[i][0], device),
                                    Value(moons.points[i][1], device)};
      scores.push_back(model(x)[0]);
      loss += relu(1.0 - moons.labels[i] * scores.back());
    }
    loss /= Value(100.0, device);
    Value decay(0, device);
    for (const Value& p : model.parameters()) decay += p * p;
    loss += decay * 1e-4;
    model.zero_grad();
    loss.backward();
    int right = 0;
    for (size_t i = 0; i < scores.size(); ++i)
      right += scores[i].data() * moons.labels[i] > 0 ? 1 : 0;
    accuracy = right / 100.0;
    const double rate = 1.0 - 0.9 * step / 100;
    for (Value& p : model.parameters()) p.set_data(p.data() - rate * p.grad());
  }
  return accuracy;
}

TEST(ScalarsDevice, LearnTwoMoons) {
  EXPECT_EQ(train_moons(Device::cpu(), 100), 1.0);
  for (const Device& device : test::every_device()) {
    if (device == Device::cpu()) continue;
    EXPECT_GT(train_moons(device, 2), 0.3) << device.id();
  }
}

}  // namespace
}  // namespace prism
