// The SYCL backend through its plug-in, on the devices that SYCL finds.
#include "backends/sycl/sycl_backend.h"

#include <iostream>
#include <random>

#include <gtest/gtest.h>

#include "conformance/suite.h"
#include "runtime/measure/self_check.h"
#include "support/backend_cases.h"
#include "support/front_ends/sycl_jit.h"
#include "support/models/short_text.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/seed.h"

namespace prism {
namespace {

Discovery discover() {
  const auto archive = test::binary_dir() / "libprism.a",
             shared = test::binary_dir() / "libprism.so";
  return make_sycl_backend(test::build_sycl_plugin(test::source_dir() / "src/backends/sycl/plugin",
                                                   {exists(archive) ? archive : shared})
                               .string())
      ->discover();
}

const Discovery& discovery() {
  static auto& found = *new Discovery(discover());
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

class SyclCases : public Sycl, public testing::WithParamInterface<test::BackendCase> {};

TEST_P(SyclCases, Hold) {
  test::BackendUnderTest backend;
  backend.dialect = "sycl";
  backend.discover = discover;
  backend.cannot = {
      {"ASecondStartCompilesNothing",
       "SYCL reads the place of its own cache once in a process: two processes do it below"},
      {"ALostDeviceIsAnError", "SYCL has no call that loses a device"}};
  test::run_backend_case(GetParam(), backend, device());
}
INSTANTIATE_TEST_SUITE_P(All, SyclCases, testing::ValuesIn(test::backend_cases()),
                         test::backend_case_name);

// Runs twice in separate processes that share a cache folder; SYCL reports each compilation.
TEST_F(Sycl, ASecondStartCompilesNothing) {
  const test::OwnCache cache;
  const test::ScopedVariable place("SYCL_CACHE_DIR", (cache.folder() / "sycl").string());
  const test::ScopedVariable trace("SYCL_CACHE_TRACE", "5");  // for texts and binaries
  const auto compiles = [] {
    const auto run = test::run_process({std::filesystem::read_symlink("/proc/self/exe").string(),
                                        "--gtest_filter=Sycl.DISABLED_CompilesAKernel",
                                        "--gtest_also_run_disabled_tests"});
    EXPECT_EQ(run.status, 0) << run.output;
    EXPECT_NE(run.output.find("[Persistent Cache]: enabled"), std::string::npos) << run.output;
    size_t count = 0;
    for (const std::string word : {"cache miss", "has been cached"})
      for (size_t at = run.output.find(word); at != std::string::npos;
           at = run.output.find(word, at + 1))
        ++count;
    return count;
  };
  EXPECT_EQ(compiles(), 2u) << "the text, and what was made of it for the device";
  EXPECT_EQ(compiles(), 0u);
}

TEST_F(Sycl, DISABLED_CompilesAKernel) {
  const Program program = device().compile(test::weighted_sum());
  const Buffer x = device().upload(std::vector<uint32_t>(64, 5)), y = device().allocate(256);
  device().queue().launch(program, 1, {x, x, y}, {64u});
  EXPECT_EQ(device().download<uint32_t>(y), std::vector<uint32_t>(64, 20));
}

TEST_F(Sycl, TellsWhatItFound) {
  EXPECT_EQ(discovery().reason, "");
  EXPECT_GT(discovery().devices[0]->info().compute_units, 0u);
  EXPECT_GT(discovery().devices[0]->info().capabilities.subgroup_size, 0u);
}

TEST_F(Sycl, KernelsOfTheLibraryAreRight) {
  SelfCheckOptions options;
  options.quick = true;
  options.seed = test_seed();
  const SelfCheck check = self_check(device(), options);
  std::cout << "seed " << options.seed << ": " << check.count(CheckOutcome::right) << " right, "
            << check.count(CheckOutcome::skipped) << " skipped" << std::endl;
  EXPECT_TRUE(check.right()) << check.complaint();
  for (const KernelCheck& kernel : check.kernels)
    if (!check.switched_off.empty() && !kernel.detail.empty())
      ADD_FAILURE() << kernel.kernel << ": " << kernel.detail;
  EXPECT_GT(check.count(CheckOutcome::right) * 10, check.kernels.size() * 9);
}

// Every third op, different ones in each run: a program takes 1.5 s to compile. The whole suite
// runs through OpenCL on the same compiler (ops_device_test), and random programs also cover the
// printer.
TEST_F(Sycl, OpsOfTensorsAreRight) {
  constexpr size_t kStep = 3;
  const uint64_t seed = test::printed_seed();
  const std::vector<SuiteOp>& ops = suite_ops();
  size_t ran = 0, programs = 0;
  for (size_t i = seed % kStep; i < ops.size(); i += kStep) {
    SuiteOptions options;
    options.seed = seed;
    options.op = ops[i].op;
    options.cases = 2;
    options.programs = 1;
    const SuiteResult result = run_suite(device(), options);
    EXPECT_GT(result.ran(), 0u) << options.op;
    for (const CaseResult& wrong : result.wrong)
      ADD_FAILURE() << wrong.op << " " << wrong.what << ": " << wrong.reason;
    ran += result.ran();
    programs += result.programs;
  }
  std::cout << (ops.size() + kStep - 1) / kStep << " of " << ops.size() << " ops, " << ran
            << " cases, " << programs << " programs" << std::endl;
}

// A language model whose device is lost in the middle of its text, and one without memory.
TEST_F(Sycl, TextSurvivesTheLossOfTheDevice) {
  std::mt19937_64 engine(test::printed_seed());
  test::expect_short_text_survives(discovery().devices[0], engine);
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
