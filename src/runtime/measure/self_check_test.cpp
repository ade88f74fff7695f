// Tests the self-check and the calibration on fake devices that are right, wrong or failing.
#include "runtime/measure/self_check.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/cache_folder.h"
#include "ir/interpreter/interpreter.h"
#include "prism/error.h"
#include "runtime/device_records.h"
#include "runtime/measure/calibrate.h"
#include "sample_kernels/sample_library.h"
#include "support/devices/fake_device.h"

namespace prism {
namespace {

using test::FakeDevice;
using test::FakeMemory;

// Runs launches in the interpreter, then lets `spoil` change the last buffer as a broken driver
// would.
void interpret_launches(FakeDevice& device, const std::function<bool(const ir::Kernel&)>& spoil) {
  device.log.on_launch = [spoil](const LaunchCall& call) {
    std::vector<ir::HostBuffer> buffers;
    for (const Binding& binding : call.bindings) {
      buffers.push_back({static_cast<FakeMemory&>(*binding.memory).content.data() + binding.offset,
                         binding.bytes});
    }
    ir::InterpretOptions options;
    options.checked = false;
    if (call.kernel->subgroup_size) options.subgroup_size = call.kernel->subgroup_size;
    ir::interpret(*call.kernel, call.groups, buffers, call.params, options);
    if (spoil(*call.kernel)) buffers.back().data[3] ^= std::byte{0x40};
  };
}

bool uses_subgroups(const ir::Kernel& kernel) {
  bool found = false;
  ir::walk(kernel.body, [&](const ir::Inst& inst) {
    found |= inst.op == ir::Op::subgroup_reduce || inst.op == ir::Op::subgroup_shuffle_xor ||
             inst.op == ir::Op::subgroup_scan;
  });
  return found;
}

struct SelfCheckTest : ::testing::Test {
  std::shared_ptr<FakeDevice> driver = std::make_shared<FakeDevice>("fake:0", 1ull << 30);
  SelfCheckOptions few{true, 1, {"vector_add_f32", "sum_rows", "fill"}, {}};
  void SetUp() override {
    driver->edit().capabilities.dialect = "opencl";  // "interpreter" would not lower the kernels
    driver->edit().capabilities.subgroup_size = 32;
  }
};

TEST_F(SelfCheckTest, ARightDeviceIsRight) {
  interpret_launches(*driver, [](const ir::Kernel&) { return false; });
  const Device device(driver, "");
  std::vector<std::string> seen;
  few.progress = [&](const std::string& kernel) { seen.push_back(kernel); };
  const SelfCheck check = self_check(device, few);
  EXPECT_EQ(check.count(CheckOutcome::right), 3u) << check.complaint();
  EXPECT_TRUE(check.right());
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(check.switched_off.empty());
}

TEST_F(SelfCheckTest, WrongResultsAreSeen) {
  interpret_launches(*driver, [](const ir::Kernel&) { return true; });
  const Device device(driver, "");
  const SelfCheck check = self_check(device, few);
  EXPECT_EQ(check.count(CheckOutcome::wrong), 3u);
  EXPECT_FALSE(check.right());
  EXPECT_NE(check.complaint().find("vector_add_f32 wrong: "), std::string::npos)
      << check.complaint();
  EXPECT_EQ(device.info().capabilities.subgroup_size, 32u) << "what does not help stays on";
}

TEST_F(SelfCheckTest, OutputsThatWereNeverWrittenAreWrong) {
  driver->log.on_launch = [](const LaunchCall&) {};  // a driver that does nothing
  EXPECT_EQ(self_check(Device(driver, ""), few).count(CheckOutcome::wrong), 3u);
}

TEST_F(SelfCheckTest, ABrokenCapabilityIsSwitchedOffBeforeTheDevice) {
  interpret_launches(*driver, uses_subgroups);
  const Device device(driver, "");
  const SelfCheck check = self_check(device, few);
  EXPECT_TRUE(check.right()) << check.complaint();
  EXPECT_EQ(check.switched_off, std::vector<std::string>{"subgroups"});
  EXPECT_EQ(device.info().capabilities.subgroup_size, 0u);
  EXPECT_EQ(driver->info().capabilities.subgroup_size, 32u);
}

TEST_F(SelfCheckTest, FailuresAndLackOfMemoryAreTold) {
  driver->log.on_launch = [](const LaunchCall&) { throw Error(ErrorCode::kDeviceLost, "gone"); };
  const SelfCheck failed = self_check(Device(driver, ""), few);
  EXPECT_EQ(failed.count(CheckOutcome::failed), 3u);
  EXPECT_NE(failed.complaint().find("gone"), std::string::npos);

  const auto tiny = std::make_shared<FakeDevice>("fake:1", 0);
  const SelfCheck skipped = self_check(Device(tiny, ""), few);
  EXPECT_EQ(skipped.count(CheckOutcome::skipped), 3u);
  EXPECT_TRUE(skipped.right());
  EXPECT_NE(skipped.kernels[0].detail.find("0 free"), std::string::npos)
      << skipped.kernels[0].detail;
}

// Uses an empty cache folder, which is removed at the end.
struct RememberedTest : SelfCheckTest {
  std::filesystem::path folder = std::filesystem::temp_directory_path() /
                                 ("prism_remembered_test_" + std::to_string(getpid()));
  std::string before;
  void SetUp() override {
    SelfCheckTest::SetUp();
    if (const char* value = std::getenv("PRISM_CACHE_DIR")) before = value;
    std::filesystem::remove_all(folder);
    setenv("PRISM_CACHE_DIR", folder.c_str(), 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder);
    before.empty() ? unsetenv("PRISM_CACHE_DIR") : setenv("PRISM_CACHE_DIR", before.c_str(), 1);
  }
};

TEST_F(RememberedTest, TheQuickVerdictIsRemembered) {
  driver->log.on_launch = [](const LaunchCall&) {};
  const std::string complaint = quick_self_check(Device(driver, ""));
  EXPECT_FALSE(complaint.empty());
  const size_t launches = driver->log.launches.size();
  EXPECT_GT(launches, 5u);
  EXPECT_EQ(quick_self_check(Device(driver, "")), complaint);
  EXPECT_EQ(driver->log.launches.size(), launches) << "not run again";

  const auto newer = std::make_shared<FakeDevice>("fake:0", 1ull << 30);
  newer->edit().driver = "fake 2.0";
  newer->log.on_launch = driver->log.on_launch;
  quick_self_check(Device(newer, ""));
  EXPECT_FALSE(newer->log.launches.empty()) << "another driver is another device";
}

TEST_F(RememberedTest, TheQuickCheckRunsAFewTellingKernels) {
  std::set<std::string> seen;
  interpret_launches(*driver, [&](const ir::Kernel& kernel) {
    seen.insert(kernel.name);
    return false;
  });
  driver->edit().capabilities.dot4 = true;
  EXPECT_EQ(quick_self_check(Device(driver, "")), "");
  for (const char* name : {"vector_add_f32", "bits", "row_softmax", "dot_rows"})
    EXPECT_TRUE(seen.contains(name)) << name;
  EXPECT_LT(seen.size(), sample_kernels().size() / 2);
}

TEST_F(RememberedTest, WhatWasSwitchedOffStaysOffInTheNextProcess) {
  interpret_launches(*driver, uses_subgroups);
  EXPECT_EQ(quick_self_check(Device(driver, "")), "");
  const auto same =
      std::make_shared<FakeDevice>("fake:0", 1ull << 30);  // as another process would find it
  same->edit().capabilities = driver->info().capabilities;
  const Device device(same, "");
  apply_known_self_check(device);
  EXPECT_EQ(device.info().capabilities.subgroup_size, 0u);
  EXPECT_TRUE(same->log.launches.empty());
}

TEST_F(RememberedTest, AResultWithUnknownCapabilitiesCountsAsNone) {
  std::string library;
  for (const SampleKernel& entry : sample_kernels()) library += ir::to_text(entry.make());
  const DeviceRecord record = {{"off", "nonsense"}, {"wrong", "nonsense"}};
  ASSERT_TRUE(write_device_record("self-check", driver->info(), record, hash_text(library)));
  interpret_launches(*driver, [](const ir::Kernel&) { return false; });
  apply_known_self_check(Device(driver, ""));
  EXPECT_EQ(quick_self_check(Device(driver, "")), "");
  const size_t launches = driver->log.launches.size();
  EXPECT_GT(launches, 0u) << "checked again";
  EXPECT_EQ(quick_self_check(Device(driver, "")), "");
  EXPECT_EQ(driver->log.launches.size(), launches) << "the record was replaced";
}

TEST_F(RememberedTest, CalibrationIsRememberedPerDriver) {
  driver->edit().total_bytes = 16 << 20;  // small, so that the sizes tried stay small
  EXPECT_FALSE(known_calibration(driver->info()).has_value());
  const Calibration measured = calibrate(Device(driver, ""));
  EXPECT_GT(measured.bandwidth, 0);
  EXPECT_GT(measured.f32_rate, 0);
  EXPECT_GT(measured.launch_seconds, 0);
  const auto known = known_calibration(driver->info());
  ASSERT_TRUE(known.has_value());
  EXPECT_NEAR(known->bandwidth / measured.bandwidth, 1, 1e-4);
  DeviceInfo other = driver->info();
  other.driver = "fake 2.0";
  EXPECT_FALSE(known_calibration(other).has_value());
  write_device_record("calibration", driver->info(), {{"bandwidth", "nonsense"}});
  EXPECT_FALSE(known_calibration(driver->info()).has_value())
      << "a record that makes no sense counts as none";
  for (const char* value : {"1e10x", "", "-1", "0", "1e999", "nan"}) {
    DeviceRecord record;
    for (const char* name : {"bandwidth", "f32_rate", "f16_rate", "launch_seconds", "host_copy"})
      record[name] = value;
    write_device_record("calibration", driver->info(), record);
    EXPECT_FALSE(known_calibration(driver->info()).has_value()) << value;
  }
}

TEST(Calibration, TheKindOfWorkDecides) {
  Calibration wide{1e12, 1e12, 1e12, 1e-5, 1e10}, quick{1e11, 1e13, 1e13, 1e-6, 1e10};
  EXPECT_LT(reference_seconds(wide, Work::bandwidth), reference_seconds(quick, Work::bandwidth));
  EXPECT_GT(reference_seconds(wide, Work::f32), reference_seconds(quick, Work::f32));
  EXPECT_GT(reference_seconds(wide, Work::f16), reference_seconds(quick, Work::f16));
  EXPECT_GT(reference_seconds(wide, Work::latency), reference_seconds(quick, Work::latency));
}

}  // namespace
}  // namespace prism
