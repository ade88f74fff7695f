// Tests product implementations chosen by measurement: the stored choice is used on every device
// with kernels.
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "prism/device.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "runtime/measure/tuned.h"
#include "support/doubles/driver_double.h"
#include "tensor/plan/plan.h"

namespace prism {
namespace {

TEST(TunedDevice, AProductTakesTheWayThatWasKept) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder.path().string());
  for (const BackendReport& report : discover_backends()) {
    for (const auto& driver : report.devices) {
      const Device device(driver, "a test");
      if (device.info().is_cpu) continue;  // its kernels do not depend on tuning
      constexpr int64_t kInner = 64, kColumns = 48;
      const Tensor x = full({1, kInner}, 0.5, DType::f32, device),
                   w = full({kColumns, kInner}, 0.25, DType::f32, device);
      x.eval();
      w.eval();
      const auto kernel_of = [&](std::vector<float>* values = nullptr) {
        const Tensor y = matmul(x, w.transpose());
        const Plan plan(std::span(&y, 1));
        const PlannedLaunch& launch = plan.steps()[0].launches[0];
        if (values) *values = y.to_vector<float>();
        return launch.product ? "vendor" : launch.program.kernel().name;
      };
      const std::string usual = kernel_of();
      std::string other, key;
      {
        const TrialChoice trial("kernel");
        other = kernel_of();
        ASSERT_EQ(trial.keys().size(), 1u);
        key = trial.keys()[0];
      }
      EXPECT_NE(usual, other) << device.id();
      EXPECT_EQ(kernel_of(), usual) << device.id() << ": the trial is over";
      keep_tuned_choice(device.info(), key, "kernel");
      std::vector<float> values;
      EXPECT_EQ(kernel_of(&values), other) << device.id();
      EXPECT_EQ(values, std::vector<float>(kColumns, 0.5f * 0.25f * kInner)) << device.id();
    }
  }
}

}  // namespace
}  // namespace prism
