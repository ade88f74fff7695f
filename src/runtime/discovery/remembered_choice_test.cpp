// Validity of remembered choices.
#include "runtime/discovery/remembered_choice.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "support/devices/fake_device.h"

namespace prism {
namespace {

using test::FakeDevice;
namespace fs = std::filesystem;
using std::chrono::hours;
using std::chrono::seconds;

struct RememberedChoiceTest : ::testing::Test {
  void SetUp() override {
    if (const char* value = std::getenv("PRISM_CACHE_DIR")) before = value;
    folder = fs::path(::testing::TempDir()) / fmt::format("prism-choice-{}", getpid());
    setenv("PRISM_CACHE_DIR", folder.c_str(), 1);
    device->edit().driver = "driver 1";
    device->edit().card = "0000:65:00.0";
    reports[0].name = "cuda";
    reports[0].devices = {device};
  }
  void TearDown() override {
    fs::remove_all(folder);
    if (before.empty())
      unsetenv("PRISM_CACHE_DIR");
    else
      setenv("PRISM_CACHE_DIR", before.c_str(), 1);
  }
  fs::path folder;
  std::string before;
  std::shared_ptr<FakeDevice> device = std::make_shared<FakeDevice>("cuda:0", 1 << 20);
  std::vector<BackendReport> reports = std::vector<BackendReport>(1);
};

TEST_F(RememberedChoiceTest, HoldsForItsWorkAndItsSurroundings) {
  remember_choice("here\nand now", Work::bandwidth, Device(device, "measured\nfastest"), hours(1));
  const auto known = remembered_choice("here\nand now", Work::bandwidth);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->backend, "cuda");
  const auto found = still_there(*known, reports);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, Device(device, ""));
  EXPECT_EQ(found->why(), "remembered: measured fastest");
  EXPECT_FALSE(remembered_choice("here\nand now", Work::f32));
  EXPECT_FALSE(remembered_choice("here\nand later", Work::bandwidth)) << "a card was added, say";
}

TEST_F(RememberedChoiceTest, IsNotTakenForAnotherDevice) {
  remember_choice("here", Work::balanced, Device(device, "why"), hours(1));
  const auto known = remembered_choice("here", Work::balanced);
  ASSERT_TRUE(known);
  device->edit().driver = "driver 2";
  EXPECT_FALSE(still_there(*known, reports)) << "the driver was updated";
  device->edit().driver = "driver 1";
  device->edit().card = "0000:66:00.0";
  EXPECT_FALSE(still_there(*known, reports)) << "another card of the same kind";
  reports[0].devices.clear();
  EXPECT_FALSE(still_there(*known, reports)) << "the card is gone";
}

TEST_F(RememberedChoiceTest, IsForgottenAndGrowsOld) {
  remember_choice("here", Work::balanced, Device(device, "why"), hours(1));
  forget_choices();
  EXPECT_FALSE(remembered_choice("here", Work::balanced));
  remember_choice("here", Work::balanced, Device(device, "why"), seconds(0));
  EXPECT_FALSE(remembered_choice("here", Work::balanced));
}

TEST_F(RememberedChoiceTest, TheCpuBesideACardIsSoonDoubted) {
  DeviceInfo cpu;
  cpu.is_cpu = true;
  EXPECT_EQ(choice_validity(cpu, false), hours(7 * 24));
  EXPECT_EQ(choice_validity(cpu, true), hours(1));
  EXPECT_EQ(choice_validity(cpu, std::nullopt), seconds(0)) << "a new card would not show";
  EXPECT_EQ(choice_validity(device->info(), std::nullopt), hours(7 * 24));
}

}  // namespace
}  // namespace prism
