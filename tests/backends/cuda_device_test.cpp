// The CUDA backend on a real NVIDIA card; without one, each test is skipped with the reason.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <regex>

#include "backends/cuda/cuda_backend.h"
#include "prism/device.h"
#include "prism/kernel.h"
#include "runtime/measure/self_check.h"
#include "support/doubles/use_cuda_double.h"

namespace prism {
namespace {

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("PRISM_CUDA_LIBRARY"))
      GTEST_SKIP() << "PRISM_CUDA_LIBRARY names another library than the driver's";
    const Discovery found = make_cuda_backend()->discover();
    if (found.devices.empty())
      GTEST_SKIP() << "no CUDA device: " << found.reason << "; " << found.next_step;
    device_ = Device(found.devices[0], "the first");
  }
  Device device_;
};

Kernel add_one_kernel() {
  using namespace dsl;
  return kernel("add_one", 256, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = x[i] + 1.0f; });
  });
}

// Allows the next launch to start at once, for maximum overlap.
Kernel eager_add_one_kernel() {
  using namespace dsl;
  return kernel("eager_add_one", 256, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    launch_next();
    wait_previous();
    y[global_id()] = x[global_id()] + 1.0f;
  });
}

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(CudaDevice, DescribesItself) {
  const DeviceInfo& info = device_.info();
  std::cout << info.name << ", " << info.card << ", " << info.driver << "\n";
  EXPECT_TRUE(
      std::regex_match(info.card, std::regex("[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]")))
      << info.card;
  EXPECT_GT(info.total_bytes, 0u);
  EXPECT_GT(device_.free_bytes(), 0u);
  EXPECT_LE(device_.free_bytes(), info.total_bytes);
  EXPECT_GT(info.compute_units, 0u);
  EXPECT_GE(info.capabilities.dialect_level, 50u);
}

TEST_F(CudaDevice, MovesLargeBuffersThroughStaging) {
  std::vector<uint32_t> values((100u << 20) / 4 + 3);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint32_t>(i * 2654435761u);
  Buffer buffer;
  const double up = seconds_of([&] {
    buffer = device_.upload(values);
    device_.queue().wait();
  });
  std::vector<uint32_t> back;
  const double down = seconds_of([&] { back = device_.download<uint32_t>(buffer); });
  EXPECT_EQ(back, values);
  std::cout << "100 MiB: up " << 0.1 / up << " GB/s, down " << 0.1 / down << " GB/s\n";
}

TEST_F(CudaDevice, AllocationBeyondMemoryIsAnError) {
  try {
    device_.allocate(1ull << 46);
    FAIL() << "64 TB were allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
    EXPECT_NE(std::string(error.what()).find("are free"), std::string::npos) << error.what();
  }
}

TEST_F(CudaDevice, WarmKernelLoadsWithinFiveMilliseconds) {
  device_.compile(add_one_kernel());
  const Discovery again = make_cuda_backend()->discover();
  const Device fresh(again.devices.at(0), "as a new process");
  fresh.allocate(4);  // creates its context
  const double seconds = seconds_of([&] { fresh.compile(add_one_kernel()); });
  std::cout << "warm load: " << seconds * 1e3 << " ms\n";
  EXPECT_LT(seconds, 0.005);
}

// Every launch reads the output of the previous one, with more groups than run at once.
TEST_F(CudaDevice, OverlappedLaunchesSeeWhatTheOneBeforeWrote) {
  const uint32_t groups = 4096, count = groups * 256;
  const Program program = device_.compile(eager_add_one_kernel());
  const Buffer a = device_.upload(std::vector<float>(count, 0.0f)), b = device_.allocate(count * 4);
  Queue& queue = device_.queue();
  const CommandGraph recording = queue.record([&] {
    for (int i = 0; i < 50; ++i) {
      queue.launch(program, groups, {a, b});
      queue.launch(program, groups, {b, a});
    }
  });
  for (int i = 0; i < 20; ++i) queue.replay(recording);
  const auto values = device_.download<float>(a);
  for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(values[i], 2000.0f) << i;
}

TEST_F(CudaDevice, CopiesInARecordingKeepTheirOrder) {
  const uint32_t count = 1 << 20;
  const Program program = device_.compile(eager_add_one_kernel());
  const Buffer a = device_.upload(std::vector<float>(count, 0.0f)), b = device_.allocate(count * 4);
  Queue& queue = device_.queue();
  const CommandGraph recording = queue.record([&] {
    for (int i = 0; i < 20; ++i) {
      queue.launch(program, count / 256, {a, b});
      queue.copy(a, b, count * 4);
    }
  });
  queue.replay(recording);
  const auto values = device_.download<float>(a);
  for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(values[i], 20.0f) << i;
}

TEST_F(CudaDevice, ReplaysAThousandTinyKernels) {
  const Program program = device_.compile(add_one_kernel());
  const Buffer a = device_.upload(std::vector<float>(32, 0.0f)), b = device_.allocate(32 * 4);
  Queue& queue = device_.queue();
  const CommandGraph recording = queue.record([&] {
    for (int i = 0; i < 500; ++i) {
      queue.launch(program, 1, {a, b}, {32u});
      queue.launch(program, 1, {b, a}, {32u});
    }
  });
  queue.replay(recording);
  queue.wait();
  double best = 1e9;
  for (int i = 0; i < 10; ++i) {
    const Event before = queue.record_event();
    queue.replay(recording);
    const Event after = queue.record_event();
    best = std::min(best, after.ms_since(before));
  }
  EXPECT_EQ(device_.download<float>(a)[0], 11000.0f);
  std::cout << "replay: " << best << " us a kernel\n";  // ms per thousand kernels are us per kernel
  if (device_.info().capabilities.dependent_launch) {
    EXPECT_LT(best, 1.0);
  }
}

TEST_F(CudaDevice, LargeSharedMemory) {
  using namespace dsl;
  const uint32_t words = device_.info().capabilities.shared_bytes / 4 / 256 * 256;
  const Kernel reverse = kernel("reverse_shared", 256, [=] {
    auto x = in("x", u32);
    auto y = out("y", u32);
    auto tile = shared(u32, words);
    for_(local_id(), words, group_size(), [&](Value i) { tile[i] = x[i]; });
    barrier();
    for_(local_id(), words, group_size(), [&](Value i) { y[i] = tile[words - 1u - i]; });
  });
  std::vector<uint32_t> x(words);
  for (uint32_t i = 0; i < words; ++i) x[i] = i * 3;
  const Buffer from = device_.upload(x), to = device_.allocate(words * 4);
  device_.queue().launch(device_.compile(reverse), 1, {from, to});
  const auto y = device_.download<uint32_t>(to);
  for (uint32_t i = 0; i < words; ++i) ASSERT_EQ(y[i], x[words - 1 - i]) << i;
}

// Run in a separate process, because an illegal access breaks the context.
TEST_F(CudaDevice, DISABLED_IllegalAccess) {
  using namespace dsl;
  const Kernel stray = kernel("stray", 32, [] {
    auto y = out("y", f32);
    auto far = param("far", u32);
    y[far + local_id()] = 1.0f;
  });
  const Buffer buffer = device_.allocate(128);
  device_.queue().launch(device_.compile(stray), 1, {buffer}, {0x7fffff00u});
  try {
    device_.queue().wait();
    FAIL() << "the device did not notice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeviceLost) << error.what();
    EXPECT_NE(std::string(error.what()).find("kernel stray"), std::string::npos) << error.what();
  }
  EXPECT_THROW(device_.allocate(16), Error);
}

TEST_F(CudaDevice, IllegalAccessIsToldAtTheWait) {
  EXPECT_EQ(test::run_self("CudaDevice.DISABLED_IllegalAccess"), 0);
}

TEST_F(CudaDevice, EveryKernelComputesRight) {
  SelfCheckOptions options;
  const SelfCheck check = self_check(device_, options);
  for (const KernelCheck& kernel : check.kernels) {
    EXPECT_TRUE(kernel.outcome == CheckOutcome::right || kernel.outcome == CheckOutcome::skipped)
        << kernel.kernel << " " << outcome_name(kernel.outcome) << ": " << kernel.detail;
  }
  EXPECT_TRUE(check.switched_off.empty()) << check.switched_off.front();
}

}  // namespace
}  // namespace prism
