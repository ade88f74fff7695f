// The WebGPU backend with wgpu-native and with Dawn, on the first adapter that each finds.
#include "backends/webgpu/webgpu_backend.h"

#include <filesystem>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "backends/webgpu/webgpu_device.h"
#include "lower/lower.h"
#include "prism/error.h"
#include "prism/ops/elementwise.h"
#include "support/backend_cases.h"
#include "support/doubles/driver_double.h"
#include "support/front_ends/wgsl_front_end.h"
#include "support/paths.h"
#include "support/run_program.h"

namespace prism {
namespace {

const Discovery& found_by(const std::string& library) {
  static auto& known = *new std::map<std::string, Discovery>;  // the library's threads live on
  const auto [at, fresh] = known.try_emplace(library);
  if (fresh) at->second = make_webgpu_backend(*test::front_end(library))->discover();
  return at->second;
}

class WebGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    PRISM_SKIP_WITHOUT(GetParam());
    ASSERT_FALSE(discovery().devices.empty()) << discovery().reason;
  }
  const Discovery& discovery() { return found_by(GetParam()); }
  Device device() { return Device(discovery().devices[0], "a test"); }
};

class WebGpuCases : public testing::TestWithParam<std::tuple<const char*, test::BackendCase>> {};

TEST_P(WebGpuCases, Hold) {
  const auto& [library, which] = GetParam();
  PRISM_SKIP_WITHOUT(library);
  test::BackendUnderTest backend;
  backend.dialect = "wgsl";
  backend.discover = [library = *test::front_end(library)] {
    return make_webgpu_backend(library)->discover();
  };
  backend.lose = [](DeviceDriver& lost) {
    auto& driver = static_cast<webgpu::DeviceOfWebGpu&>(lost);
    driver.api().DeviceDestroy(driver.device());
  };
  if (std::string(library) == test::kWgpu)
    backend.cannot["ASecondStartCompilesNothing"] =
        "wgpu-native has no call for it; the driver below keeps what it compiled: see below";
  test::run_backend_case(which, backend, Device(found_by(library).devices.at(0), "a test"));
}

std::string library_name(const char* library) {
  return std::string(library) == test::kWgpu ? "wgpu" : "dawn";
}
INSTANTIATE_TEST_SUITE_P(Libraries, WebGpuCases,
                         testing::Combine(testing::Values(test::kWgpu, test::kDawn),
                                          testing::ValuesIn(test::backend_cases())),
                         [](const auto& which) {
                           return library_name(std::get<0>(which.param)) + "_" +
                                  std::get<1>(which.param).name;
                         });

TEST_P(WebGpu, TellsWhatItFound) {
  EXPECT_EQ(discovery().reason, "");
  const DeviceInfo& info = discovery().devices[0]->info();
  EXPECT_NE(discovery().found.find(".so"), std::string::npos) << discovery().found;
  EXPECT_NE(info.driver.find("over Vulkan"), std::string::npos) << info.driver;
  EXPECT_EQ(info.software, info.name.find("llvmpipe") != std::string::npos);
  // The adapter's limits, not the guaranteed minimum.
  EXPECT_GT(info.capabilities.max_group_size, 256u);
  EXPECT_GT(info.capabilities.shared_bytes, 16384u);
  EXPECT_TRUE(info.capabilities.math_f16);
  if (info.software) {
    EXPECT_EQ(info.capabilities.subgroup_size, 8u);
  }
}

// A launch that the library rejects: wait() throws with its message, and the queue stays usable.
TEST_P(WebGpu, KeepsAFailureUntilTheWait) {
  DeviceDriver& driver = *discovery().devices[0];
  const ir::Kernel lowered = lower(test::weighted_sum(), driver.info().capabilities);
  const auto program = driver.compile(lowered);
  const auto queue = driver.make_queue();
  const auto a = driver.allocate(1024), y = driver.allocate(1024);
  const std::vector<uint32_t> fives(256, 5);
  queue->write(*a, 0, std::as_bytes(std::span(fives)));
  LaunchCall call;
  call.program = program.get();
  call.kernel = &lowered;
  const std::vector<uint32_t> params = {64};
  call.params = params;
  const std::vector<Binding> off = {{a.get(), 0, 256}, {a.get(), 4, 256}, {y.get(), 0, 256}};
  call.bindings = off;  // 4 is no multiple of 32, the smallest possible alignment
  queue->launch(call);
  try {
    queue->wait();
    FAIL() << "a binding at byte 4 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDriver);
    EXPECT_NE(std::string(error.what()).find("4"), std::string::npos) << error.what();
  }
  const std::vector<Binding> right = {{a.get(), 0, 256}, {a.get(), 256, 256}, {y.get(), 0, 256}};
  call.bindings = right;
  queue->launch(call);
  std::vector<uint32_t> got(64);
  queue->read(*y, 0, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, std::vector<uint32_t>(64, 20u));
}

// wgsl_device_test compares all kernels as printed text; here some of them run as a user's
// launches.
TEST_P(WebGpu, KernelsOfTheLibraryAreRight) { test::check_library_kernels(device(), 4); }

// WebGPU has no 64-bit types: it stores them, and the CPU computes, including gather.
TEST_P(WebGpu, HoldsNumbersItCannotComputeWith) {
  std::vector<int64_t> values(15);
  std::iota(values.begin(), values.end(), int64_t{1} << 40);
  const Tensor x = from_vector(values, {3, 5}, device());
  const std::vector<int64_t> got = (-x.transpose()).to_vector<int64_t>();
  ASSERT_EQ(got.size(), 15u);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(got[i], -values[i % 3 * 5 + i / 3]) << i;
}

TEST_P(WebGpu, OpsOfTensorsAreRight) { test::check_tensor_ops(device(), 100, 24); }

INSTANTIATE_TEST_SUITE_P(Libraries, WebGpu, testing::Values(test::kWgpu, test::kDawn),
                         [](const auto& which) { return library_name(which.param); });

// wgpu-native has no cache callback, but the driver below it caches: of two processes that share
// its cache folder, a later one writes nothing.
TEST(WgpuNative, ASecondStartFindsWhatTheDriverKept) {
  PRISM_SKIP_WITHOUT(test::kWgpu);
  if (!found_by(test::kWgpu).devices.at(0)->info().software)
    GTEST_SKIP() << "Mesa's drivers alone are told where to keep what they compiled";
  const test::TemporaryFolder folder;
  const test::ScopedVariable place("MESA_SHADER_CACHE_DIR", folder.path().string());
  const test::ScopedVariable kept("MESA_SHADER_CACHE_DISABLE", "false");
  const auto files = [&] {
    std::map<std::string, std::filesystem::file_time_type> written;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (entry.is_regular_file()) written[entry.path().string()] = entry.last_write_time();
    return written;
  };
  const std::string launches = "Libraries/WebGpuCases.Hold/wgpu_LaunchesOfAwkwardSizes";
  // The driver writes in the background and drops what is not written when the process ends, so
  // that a busy machine may need more starts.
  auto before = files();
  bool is_kept = false;
  for (int start = 0; start < 8 && !is_kept; ++start) {
    ASSERT_EQ(test::run_self(launches), 0);
    const auto after = files();
    is_kept = after.size() > 1 && after == before;
    before = after;
  }
  EXPECT_TRUE(is_kept) << "eight starts compiled again; " << before.size() << " files were kept";
}

// A file that is not a WebGPU library gives a reason, whatever it does.
class BrokenLibrary : public testing::Test {
 protected:
  Discovery discover(const std::string& name) {
    return make_webgpu_backend((folder_.path() / name).string())->discover();
  }
  void build(const std::string& name, const std::string& text) {
    test::write_file(folder_.path() / (name + ".cpp"), text);
    const auto result = test::run_process({test::host_compiler(), "-shared", "-fPIC", "-o",
                                           (folder_.path() / name).string(),
                                           (folder_.path() / (name + ".cpp")).string()});
    ASSERT_EQ(result.status, 0) << result.output;
  }
  test::TemporaryFolder folder_;
};

TEST_F(BrokenLibrary, IsAReason) {
  test::write_file(folder_.path() / "empty.so", "");
  test::write_file(folder_.path() / "text.so", "this is no library\n");
  build("other.so", "extern \"C\" int answer() { return 42; }\n");
  for (const char* name : {"empty.so", "text.so", "other.so", "absent.so"}) {
    const Discovery found = discover(name);
    EXPECT_TRUE(found.devices.empty());
    EXPECT_NE(found.reason.find(name), std::string::npos) << found.reason;
    EXPECT_FALSE(found.next_step.empty());
  }
}

TEST_F(BrokenLibrary, MayCrashInItsFirstCall) {
  build("crash.so", "struct Crash { Crash() { *(volatile int*)0 = 1; } } crash;\n");
  const Discovery first = discover("crash.so");
  EXPECT_TRUE(first.devices.empty());
  EXPECT_NE(first.reason.find("crashed"), std::string::npos) << first.reason;
  const Discovery again = discover("crash.so");
  EXPECT_NE(again.reason.find("earlier run"), std::string::npos) << again.reason;
}

}  // namespace
}  // namespace prism
