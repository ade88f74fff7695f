// Every kernel of the library on every device found, with all capabilities of the device and
// without each one.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "prism/device.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "runtime/capability_switches.h"
#include "runtime/driver.h"
#include "runtime/measure/case_run.h"
#include "runtime/measure/self_check.h"
#include "sample_kernels/sample_kernels.h"
#include "sample_kernels/sample_library.h"
#include "support/devices/devices.h"

namespace prism {
namespace {

std::vector<std::shared_ptr<DeviceDriver>> all_devices() {
  std::vector<std::shared_ptr<DeviceDriver>> devices;
  for (const BackendReport& report : discover_backends()) {
    devices.insert(devices.end(), report.devices.begin(), report.devices.end());
  }
  return devices;
}

std::string test_name(const std::string& text) {
  std::string name = text;
  std::ranges::replace_if(
      name, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
}

using DeviceAndKernel = std::tuple<std::shared_ptr<DeviceDriver>, std::string>;

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const SampleKernel& kernel : sample_kernels()) names.push_back(kernel.name);
  return names;
}

class EveryKernel : public ::testing::TestWithParam<DeviceAndKernel> {};

TEST_P(EveryKernel, MatchesItsReference) {
  const Device device(std::get<0>(GetParam()), "");
  SelfCheckOptions options;
  options.quick = false;
  options.kernels = {std::get<1>(GetParam())};
  const SelfCheck check = self_check(device, options);
  ASSERT_EQ(check.kernels.size(), 1u);
  const KernelCheck& result = check.kernels[0];
  EXPECT_TRUE(check.switched_off.empty()) << result.detail;
  EXPECT_TRUE(check.right()) << result.detail;
  if (result.outcome == CheckOutcome::skipped) GTEST_SKIP() << result.detail;
  if (result.skipped_cases)
    std::cout << result.skipped_cases << " cases skipped: " << result.detail << "\n";
}

INSTANTIATE_TEST_SUITE_P(Devices, EveryKernel,
                         ::testing::Combine(::testing::ValuesIn(all_devices()),
                                            ::testing::ValuesIn(kernel_names())),
                         [](const auto& test) {
                           return test_name(std::get<0>(test.param)->info().id + "_" +
                                            std::get<1>(test.param));
                         });

class EveryDevice : public ::testing::TestWithParam<std::shared_ptr<DeviceDriver>> {};

// Without a capability the results must be the same on the same device. Products are skipped on
// Intel's OpenCL, whose compiler takes 5 s to 25 s for each: PoCL lacks the same capabilities and
// runs their text, and llvmpipe has them and runs without each.
TEST_P(EveryDevice, ComputesTheSameWithoutEachCapability) {
  const Device device(GetParam(), "");
  const ir::Capabilities original = device.info().capabilities;
  const bool is_intel = test::is_intels_opencl(device.info());
  if (is_intel) test::left_out(device.id(), "Intel's OpenCL compiles products for minutes");
  for (const std::string& name : switchable_capabilities(original)) {
    ir::Capabilities reduced = original;
    switch_off_capability(reduced, name);
    SelfCheckOptions options;
    for (const SampleKernel& entry : sample_kernels()) {
      if (is_intel && entry.name.starts_with("matmul")) continue;
      if (capability_matters(entry.make(), original, name)) options.kernels.push_back(entry.name);
    }
    if (options.kernels.empty()) continue;
    device.use_capabilities(reduced);
    const SelfCheck check = self_check(device, options);
    EXPECT_TRUE(check.right()) << "without " << name << ": " << check.complaint();
    for (const KernelCheck& kernel : check.kernels) {
      EXPECT_TRUE(check.switched_off.empty() || kernel.detail.empty())
          << kernel.kernel << " without " << name << ": " << kernel.detail;
    }
  }
  device.use_capabilities(original);
}

TEST_P(EveryDevice, ReplaysARecording) {
  const Device device(GetParam(), "");
  const ir::Kernel kernel = kernels::increment();
  const Program program = device.compile(kernel);
  const Buffer y = device.upload(std::vector<uint32_t>(kernel.group_size, 5));
  const Buffer copy = device.upload(std::vector<uint32_t>(kernel.group_size, 0));
  Queue& queue = device.queue();
  const CommandGraph recording = queue.record([&] {
    for (int i = 0; i < 100; ++i) queue.launch(program, 1, {y});
    queue.copy(copy, y, y.bytes());
  });
  EXPECT_EQ(device.download<uint32_t>(y)[0], 5u) << "recording runs nothing";
  queue.replay(recording);
  queue.replay(recording);
  queue.wait();
  EXPECT_EQ(device.download<uint32_t>(y), std::vector<uint32_t>(kernel.group_size, 205));
  EXPECT_EQ(device.download<uint32_t>(copy), std::vector<uint32_t>(kernel.group_size, 205));
}

// Against constants, because constant folding is where compilers fail; as scalars and as lanes.
TEST_P(EveryDevice, OrdersWidenedIntegers) {
  const Device device(GetParam(), "");
  if (device.id() == "null:0") GTEST_SKIP() << "it computes nothing";
  const std::vector<int64_t> constants = {0,
                                          1,
                                          128,
                                          INT32_MAX,
                                          INT32_MIN,
                                          0x80000000,
                                          0xffffffff,
                                          0x100000000,
                                          -1,
                                          -0x80000001,
                                          INT64_MIN,
                                          INT64_MIN + 33,
                                          -0x100000000,
                                          INT64_MAX,
                                          0x7fffffff00000080};
  std::vector<int32_t> x = {
      0, 1, -1, 2, 127, 128, INT32_MAX, INT32_MIN, INT32_MIN + 33, -5, 65536, INT32_MAX - 1};
  const auto orders = [](auto a, auto b) {
    return uint32_t{a == b} | uint32_t{a != b} << 1 | uint32_t{a < b} << 2 | uint32_t{a <= b} << 3 |
           uint32_t{a > b} << 4 | uint32_t{a >= b} << 5;
  };
  for (const bool is_signed : {true, false})
    for (const uint8_t lanes : {1, 4}) {
      using namespace dsl;
      const DType wide = is_signed ? i64 : u64;
      const uint32_t columns = static_cast<uint32_t>(constants.size());
      const Program program = device.compile(kernel("widened", 16, [&] {
        auto from = in("x", is_signed ? i32 : u32);
        auto y = out("y", u32);
        const Value i = local_id();
        if_(i < uint32_t(x.size()), [&] {
          const Value a = splat(cast(wide, from[i]), lanes);
          for (uint32_t c = 0; c < columns; ++c) {
            const Value b = splat(constant_bits(wide, static_cast<uint64_t>(constants[c])), lanes);
            Value word = constant(u32, 0);
            uint32_t bit = 0;
            for (const Value& truth : {a == b, a != b, a<b, a <= b, a> b, a >= b})
              word = word | cast(u32, lanes == 1 ? truth : truth[2]) << bit++;
            y[i * columns + c] = word;
          }
        });
      }));
      const Buffer y = device.upload(std::vector<uint32_t>(x.size() * columns, 0xcdcdcdcd));
      device.queue().launch(program, 1, {device.upload(x), y});
      const std::vector<uint32_t> found = device.download<uint32_t>(y);
      for (size_t i = 0; i < x.size(); ++i)
        for (size_t c = 0; c < columns; ++c) {
          const uint32_t right =
              is_signed ? orders(int64_t{x[i]}, constants[c])
                        : orders(uint64_t{static_cast<uint32_t>(x[i])}, uint64_t(constants[c]));
          EXPECT_EQ(found[i * columns + c], right)
              << x[i] << " and " << constants[c] << (is_signed ? ", signed" : ", unsigned") << ", "
              << int{lanes} << " lanes; bits: == != < <= > >=";
        }
    }
}

TEST_P(EveryDevice, TimesWhatItRuns) {
  const Device device(GetParam(), "");
  const ir::Kernel kernel = kernels::copy_words();
  const Program program = device.compile(kernel);
  const Buffer from = device.allocate(4 << 20), to = device.allocate(4 << 20);
  const uint32_t count = (4 << 20) / 16;
  Queue& queue = device.queue();
  const Event start = queue.record_event();
  for (int i = 0; i < 4; ++i) queue.launch(program, count / kernel.group_size, {from, to}, {count});
  const Event end = queue.record_event();
  end.wait();
  EXPECT_TRUE(end.done());
  EXPECT_GT(end.ms_since(start), 0);
  EXPECT_LT(end.ms_since(start), 60000);
}

TEST_P(EveryDevice, MoreMemoryThanThereIsIsAnErrorThatSaysSo) {
  const Device device(GetParam(), "");
  try {
    device.allocate(1ull << 50);
    FAIL() << "a petabyte was allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    const std::string message = error.what();
    EXPECT_NE(message.find(device.id()), std::string::npos) << message;
    EXPECT_NE(message.find("1125899906842624"), std::string::npos) << message;
    EXPECT_NE(message.find("free"), std::string::npos) << message;
  }
}

TEST_P(EveryDevice, SaysWhatItIs) {
  const Device device(GetParam(), "");
  const DeviceInfo& info = device.info();
  EXPECT_EQ(info.id.substr(0, info.id.find(':')), info.backend);
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.card.empty());
  EXPECT_FALSE(info.driver.empty());
  EXPECT_GT(info.total_bytes, 0u);
  EXPECT_LE(device.free_bytes(), info.total_bytes);
  EXPECT_GT(info.compute_units, 0u);
  EXPECT_EQ(Device::named(info.id).id(), info.id);
}

INSTANTIATE_TEST_SUITE_P(Devices, EveryDevice, ::testing::ValuesIn(all_devices()),
                         [](const auto& test) { return test_name(test.param->info().id); });

TEST(Devices, TheSummaryNamesEveryDeviceAndTheChosenBackend) {
  const std::string summary = backend_summary();
  EXPECT_EQ(summary.find("=== Available Backends ===\n"), 0u) << summary;
  for (const auto& device : all_devices()) {
    EXPECT_NE(summary.find("] " + device->info().name + ": "), std::string::npos) << summary;
  }
  const Device chosen = best_available_backend();
  EXPECT_EQ(chosen, init_backend());
  EXPECT_NE(summary.find("\nRecommended backend: "), std::string::npos);
  EXPECT_NE(summary.find(chosen.why()), std::string::npos) << summary;
  EXPECT_FALSE(chosen.info().software) << "a software device is never taken over the CPU";
  EXPECT_EQ(Device::cpu().backend(), "cpu");
  if (!Device::is_gpu_available()) {
    EXPECT_THROW(Device::gpu(), Error);
  }
  EXPECT_THROW(init_backend_with_memory_check(BackendPreference::Auto, 1ull << 60), Error);
}

// Without any device, all tests above would pass.
TEST(Devices, ThereIsAtLeastTheCpu) { EXPECT_FALSE(all_devices().empty()); }

}  // namespace
}  // namespace prism
