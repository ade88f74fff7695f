// Tests that tuned choices are stored per device and that a trial overrides them.
#include "runtime/measure/tuned.h"

#include <gtest/gtest.h>

#include "runtime/device_records.h"
#include "support/devices/fake_device.h"
#include "support/doubles/driver_double.h"

namespace prism {
namespace {

TEST(Tuned, ChoicesAreKeptForADeviceAndItsDriver) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder.path().string());
  test::FakeDevice first("fake:41"), other("fake:42");
  EXPECT_EQ(tuned_choice(first.info(), "matmul_a"), std::nullopt);
  keep_tuned_choice(first.info(), "matmul_a", "kernel");
  keep_tuned_choice(first.info(), "matmul_b", "vendor");
  EXPECT_EQ(tuned_choice(first.info(), "matmul_a"), "kernel");
  EXPECT_EQ(tuned_choice(first.info(), "matmul_b"), "vendor");
  EXPECT_EQ(tuned_choice(other.info(), "matmul_a"), std::nullopt);
  first.edit().driver = "fake 2.0";
  EXPECT_EQ(tuned_choice(first.info(), "matmul_a"), std::nullopt);
  first.edit().driver = "fake 1.0";
  const auto on_disk = read_device_record("tuned", first.info());
  ASSERT_TRUE(on_disk.has_value());
  EXPECT_EQ(on_disk->at("matmul_b"), "vendor");
}

TEST(Tuned, ATrialHoldsWhileItLives) {
  const test::FakeDevice device("fake:43");
  {
    const TrialChoice trial("kernel");
    EXPECT_EQ(tuned_choice(device.info(), "x"), "kernel");
    {
      const TrialChoice inner("vendor");
      EXPECT_EQ(tuned_choice(device.info(), "y"), "vendor");
    }
    EXPECT_EQ(tuned_choice(device.info(), "x"), "kernel");
    EXPECT_EQ(trial.keys(), std::vector<std::string>{"x"});
  }
  EXPECT_EQ(tuned_choice(device.info(), "x"), std::nullopt);
}

}  // namespace
}  // namespace prism
