// Tests the predicted times of plan steps.
#include "tensor/plan/expected.h"

#include <gtest/gtest.h>

#include "prism/ops/elementwise.h"
#include "prism/ops/matmul.h"
#include "runtime/measure/calibrate.h"
#include "support/doubles/driver_double.h"

namespace prism {
namespace {

TEST(Expected, TimesComeFromWhatWasMeasured) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder.path().string());
  const Device cpu = Device::cpu();
  const Tensor x = zeros({500, 500}, DType::f32, cpu);
  x.eval();
  const Tensor sum = x + 1.0, product = matmul(x, x);
  Plan plan(std::vector<Tensor>{sum, product});
  ASSERT_EQ(plan.steps().size(), 2u);
  EXPECT_EQ(expected_seconds(plan.steps()[0]), std::nullopt);
  EXPECT_NE(plan.explain().find("no expected times for cpu:0: `prism calibrate"), std::string::npos)
      << plan.explain();

  keep_native_calibration(cpu.info(), {1e9, 1e10, 2e10, 1e-7, 1e9});
  const auto of = [&](const char* name) {
    for (const PlanStep& step : plan.steps())
      if (step.name == name) return expected_seconds(step).value_or(-1);
    return -2.0;
  };
  EXPECT_NEAR(of("add"), 2 * 500 * 500 * 4 / 1e9, 1e-9);          // its memory
  EXPECT_NEAR(of("matmul"), 2.0 * 500 * 500 * 500 / 1e10, 1e-9);  // its arithmetic
  plan.measure();
  const std::string text = plan.explain();
  EXPECT_NE(text.find("expected 2.00 ms, measured "), std::string::npos) << text;
  EXPECT_EQ(text.find("no expected times"), std::string::npos) << text;
}

}  // namespace
}  // namespace prism
