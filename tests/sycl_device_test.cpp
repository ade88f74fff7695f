// The SYCL backend through its plug-in, on the devices that SYCL finds.
#include "backends/sycl/sycl_backend.h"

#include <cstring>
#include <iostream>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "base/error.h"
#include "dsl/dsl.h"
#include "grad/suite.h"
#include "runtime/device.h"
#include "runtime/self_check.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/sycl_jit.h"

namespace prism {
namespace {

using namespace dsl;

const Discovery& discovery() {
  static auto& found = *new Discovery(
      make_sycl_backend(
          test::build_sycl_plugin(test::source_dir() / "src/backends/sycl/plugin").string())
          ->discover());
  return found;
}

class Sycl : public testing::Test {
 protected:
  void SetUp() override {
    PRISM_SKIP_WITHOUT(test::kSyclRoot);
    ASSERT_FALSE(discovery().devices.empty()) << discovery().reason;
  }
  Device device() { return Device(discovery().devices[0], "a test"); }
};

// y = a + 3 b, over u32.
ir::Kernel weighted_sum() {
  return kernel("weighted_sum", 64, [] {
    auto a = in("a", u32);
    auto b = in("b", u32);
    auto y = out("y", u32);
    auto count = param("count", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = a[i] + b[i] * 3u; });
  });
}

TEST_F(Sycl, TellsWhatItFound) {
  EXPECT_EQ(discovery().reason, "");
  const DeviceInfo& info = discovery().devices[0]->info();
  EXPECT_EQ(info.id, "sycl:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_GT(info.total_bytes, 64u << 20);
  EXPECT_GT(info.compute_units, 0u);
  EXPECT_GT(info.capabilities.subgroup_size, 0u);
}

// Launched, recorded, replayed; writes small and large; ranges of one buffer.
TEST_F(Sycl, LaunchesCopiesAndRecordings) {
  constexpr uint32_t kCount = 100, kRange = kRangeAlignment;
  const Program program = device().compile(weighted_sum());
  Queue queue = device().make_queue();
  const Buffer arena = device().allocate(4 * kRange);
  std::vector<uint32_t> model(kRange);  // 4 ranges of kRange bytes
  std::iota(model.begin(), model.end(), 17u);
  queue.write(arena, std::as_bytes(std::span(model)));
  const auto range = [&](uint32_t i) { return BufferRange{arena, i * kRange, kCount * 4}; };
  const auto work = [&] {
    queue.launch(program, 2, {range(0), range(1), range(2)}, {kCount});
    queue.launch(program, 2, {range(2), range(2), range(3)}, {kCount});
    queue.copy(arena, arena, kCount * 4, 0, 3 * kRange);
  };
  const auto model_work = [&] {
    const auto sum = [&](uint32_t a, uint32_t b, uint32_t y) {
      for (uint32_t i = 0; i < kCount; ++i)
        model[y * kRange / 4 + i] = model[a * kRange / 4 + i] + model[b * kRange / 4 + i] * 3u;
    };
    sum(0, 1, 2), sum(2, 2, 3);
    std::copy_n(model.begin() + 3 * kRange / 4, kCount, model.begin());
  };
  const auto expect_right = [&](const char* when) {
    std::vector<uint32_t> got(model.size());
    queue.read(arena, std::as_writable_bytes(std::span(got)));
    EXPECT_EQ(got, model) << when;
  };
  work();
  model_work();
  expect_right("launched");
  const Recording recording = queue.record(work);
  expect_right("recorded");
  for (int i = 0; i < 5; ++i) {
    queue.replay(recording);
    model_work();
  }
  expect_right("replayed");

  std::vector<uint32_t> sent((1 << 20) + 3), got(sent.size());
  std::iota(sent.begin(), sent.end(), 5u);
  const Buffer large = device().allocate(sent.size() * 4);
  queue.write(large, std::as_bytes(std::span(sent)));
  queue.read(large, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, sent);

  const Event before = queue.record_event();
  queue.launch(program, 2, {range(0), range(1), range(2)}, {kCount});
  const Event after = queue.record_event();
  EXPECT_GE(after.ms_since(before), 0.0);
  EXPECT_LT(after.ms_since(before), 60000.0);
}

TEST_F(Sycl, RefusesInTheCompilersWords) {
  const ir::Kernel wrong = kernel("wrong_text", 32, [] {
    auto y = out("y", u32);
    y[local_id()] = raw("sycl", "{r} = no_such_function({0});", {local_id()}, {u32, 1},
                        [] { return constant(u32, 1); });
  });
  try {
    device().compile(wrong);
    FAIL() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompile);
    EXPECT_NE(std::string(error.what()).find("no_such_function"), std::string::npos)
        << error.what();
  }
  try {
    device().allocate(uint64_t{1} << 60);
    FAIL() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(std::string(error.what()).find("sycl:0"), std::string::npos) << error.what();
  }
}

TEST_F(Sycl, KernelsOfTheLibraryAreRight) {
  SelfCheckOptions options;
  options.quick = true;
  options.seed = std::random_device{}();
  const SelfCheck check = self_check(device(), options);
  std::cout << "seed " << options.seed << ": " << check.count(CheckOutcome::right) << " right, "
            << check.count(CheckOutcome::skipped) << " skipped" << std::endl;
  EXPECT_TRUE(check.right()) << check.complaint();
  for (const KernelCheck& kernel : check.kernels)
    if (!check.switched_off.empty() && !kernel.detail.empty())
      ADD_FAILURE() << kernel.kernel << ": " << kernel.detail;
  EXPECT_GT(check.count(CheckOutcome::right) * 10, check.kernels.size() * 9);
}

TEST_F(Sycl, OpsOfTensorsAreRight) {
  SuiteOptions options;
  options.seed = std::random_device{}();
  options.cases = 100;
  options.programs = 25;  // each takes more than a second to compile
  const SuiteResult result = run_suite(device(), options);
  std::cout << "seed " << result.seed << ": " << result.right() << " of " << result.ran()
            << " right, " << result.programs << " programs" << std::endl;
  EXPECT_GT(result.ran(), 0u);
  for (const CaseResult& wrong : result.wrong)
    ADD_FAILURE() << wrong.op << " " << wrong.what << ": " << wrong.reason;
}

TEST(SyclPlugin, WhatIsNoPluginIsAReason) {
  const test::TemporaryFolder folder;
  test::write_file(folder.path() / "empty.so", "");
  test::write_file(folder.path() / "other.cpp", "extern \"C\" int answer() { return 42; }\n");
  const auto built = test::run_process({test::host_compiler(), "-shared", "-fPIC", "-o",
                                        (folder.path() / "other.so").string(),
                                        (folder.path() / "other.cpp").string()});
  ASSERT_EQ(built.status, 0) << built.output;
  for (const char* name : {"empty.so", "other.so", "absent.so"}) {
    const Discovery found = make_sycl_backend((folder.path() / name).string())->discover();
    EXPECT_TRUE(found.devices.empty());
    EXPECT_NE(found.reason.find(name), std::string::npos) << found.reason;
    EXPECT_FALSE(found.next_step.empty());
  }
}

}  // namespace
}  // namespace prism
