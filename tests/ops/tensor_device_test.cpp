// Tests chains of element functions on every device found, against float64, with views of all
// kinds.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/ops/elementwise.h"
#include "support/seed.h"
#include "tensor/chain/chain.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

std::vector<Device> all_devices() {
  std::vector<Device> devices;
  for (const BackendReport& report : discover_backends())
    for (const auto& driver : report.devices) devices.emplace_back(driver, "a test");
  return devices;
}

class Random {
 public:
  Random() : engine_(test_seed()) {}
  std::vector<double> values(int64_t count, double low = -3, double high = 3) {
    std::uniform_real_distribution<float> draw(static_cast<float>(low), static_cast<float>(high));
    std::vector<double> result;
    for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<double>(draw(engine_)));
    return result;
  }

 private:
  std::mt19937 engine_;
};

// A lower bound of the operands that the function is defined for.
double lowest_operand(ScalarOp op) {
  switch (op) {
#define PRISM_FLOAT_FUNCTION(name, low, high, reference, f64, lanes, vector, kernel, gradient) \
  case ScalarOp::name:                                                                         \
    return low;
#include "base/types/float_functions.inc"
    case ScalarOp::pow:
      return 0.1;
    default:
      return -3;
  }
}

TEST(TensorDevice, EveryFunctionEverywhere) {
  Random random;
  for (const Device& device : all_devices()) {
    for (int code = 0; code < kScalarOpCount; ++code) {
      const auto op = static_cast<ScalarOp>(code);
      const int operands = scalar_op_operands(op);
      if (operands == 3) continue;
      const auto x = random.values(1029, lowest_operand(op)), y = random.values(1029, 0.2);
      const Tensor a = from_doubles(x, {1029}, DType::f32, device);
      const Tensor b = from_doubles(y, {1029}, DType::f32, device);
      const auto got = (operands == 1 ? elementwise(op, a) : elementwise(op, a, b)).to_doubles();
      for (size_t i = 0; i < x.size(); ++i) {
        const double wanted = evaluate(op, DType::f64, x[i], y[i]);
        EXPECT_NEAR(got[i], wanted, 1e-6 + 4e-6 * std::fabs(wanted))
            << device.id() << " " << scalar_op_name(op) << " of " << x[i] << ", " << y[i];
        if (testing::Test::HasFailure()) break;
      }
    }
  }
}

TEST(TensorDevice, ViewsAndBroadcasts) {
  Random random;
  for (const Device& device : all_devices()) {
    const auto x = random.values(5 * 7 * 11), y = random.values(7);
    const Tensor a = from_doubles(x, {5, 7, 11}, DType::f32, device);
    const Tensor b = from_doubles(y, {7}, DType::f32, device);
    const Tensor c = a.permute({2, 0, 1}).slice(0, 9, -12, -2) * b +
                     a.select(0, 2).select(1, 3).expand({5, 5, 7});
    const auto got = c.to_doubles();
    size_t next = 0;
    for (int i = 9; i >= 0; i -= 2) {
      for (int j = 0; j < 5; ++j) {
        for (int k = 0; k < 7; ++k) {
          const auto at = [&](int p, int q, int r) {
            return x[static_cast<size_t>((p * 7 + q) * 11 + r)];
          };
          EXPECT_NEAR(got[next++], at(j, k, i) * y[static_cast<size_t>(k)] + at(2, k, 3), 1e-5)
              << device.id();
        }
      }
    }
  }
}

TEST(TensorDevice, MovesBetweenDevices) {
  Random random;
  const auto x = random.values(1000);
  for (const Device& device : all_devices()) {
    const Tensor a = from_doubles(x, {10, 100}, DType::f32, Device::cpu());
    const Tensor b = (a.transpose().to(device) * 2.0).to(Device::cpu()) + 1.0;
    const auto got = b.to_doubles();
    for (size_t i = 0; i < 1000; ++i)
      EXPECT_NEAR(got[i], x[i % 10 * 100 + i / 10] * 2 + 1, 1e-5) << device.id();
  }
}

}  // namespace
}  // namespace prism
