// The CUDA backend over a double of its driver: discovery, failures, recordings, the self-check,
// the kernel cache.
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/cache_folder.h"
#include "prism/device.h"
#include "prism/kernel.h"
#include "runtime/measure/self_check.h"
#include "support/doubles/double_cases.h"
#include "support/doubles/use_cuda_double.h"
#include "support/paths.h"

namespace prism {
namespace {

using test::CudaDouble;

class CudaDoubleTest : public testing::Test {
 protected:
  // Checks that all handles were freed and that nothing wrote outside a buffer.
  void TearDown() override { double_.expect_clean(); }
  CudaDouble double_;
};

using test::add_one_kernel;
using test::contains;
using test::counting;
using test::error_of;
using test::scale_kernel;

// --- discovery

TEST_F(CudaDoubleTest, DescribesTheDevice) {
  double_.set("memory=2147483648,capability=90");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 1u) << found.reason;
  EXPECT_EQ(found.reason, "");
  const DeviceInfo& info = found.devices[0]->info();
  EXPECT_EQ(info.id, "cuda:0");
  EXPECT_EQ(info.name, "Double of a GPU");
  EXPECT_EQ(info.card, "0000:a1:00.0");
  EXPECT_EQ(info.total_bytes, 2147483648u);
  EXPECT_EQ(found.devices[0]->free_bytes(), 2147483648u);
  EXPECT_TRUE(contains(info.driver, "CUDA 13.0")) << info.driver;
  EXPECT_TRUE(contains(info.driver, "NVRTC 12.9")) << info.driver;
  EXPECT_EQ(info.compute_units, 4u);
  const ir::Capabilities& can = info.capabilities;
  EXPECT_EQ(can.dialect, "cuda");
  EXPECT_EQ(can.dialect_level, 90u);
  EXPECT_EQ(can.shared_bytes, 227u * 1024);
  EXPECT_TRUE(can.dependent_launch);
  EXPECT_TRUE(can.dot4);
  EXPECT_EQ(can.fragments.size(), 3u);
  EXPECT_EQ(can.max_groups[0], 0x7fffffffu);
  EXPECT_EQ(can.max_groups[1], 65535u);
}

TEST_F(CudaDoubleTest, OldCardHasLess) {
  double_.set("capability=50");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 1u) << found.reason;
  const ir::Capabilities& can = found.devices[0]->info().capabilities;
  EXPECT_FALSE(can.dot4);
  EXPECT_FALSE(can.math_f16);
  EXPECT_FALSE(can.async_copy);
  EXPECT_FALSE(can.dependent_launch);
  EXPECT_TRUE(can.fragments.empty());
}

TEST_F(CudaDoubleTest, OverlapNeedsADriverThatRecordsIt) {
  double_.set("driver=12020,nvrtc=12020");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 1u) << found.reason;
  EXPECT_FALSE(found.devices[0]->info().capabilities.dependent_launch);
}

TEST_F(CudaDoubleTest, EveryCardIsOffered) {
  double_.set("devices=3");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 3u);
  EXPECT_EQ(found.devices[2]->info().id, "cuda:2");
  EXPECT_EQ(found.devices[2]->info().card, "0000:a3:00.0");
}

struct Absent {
  const char* settings;
  const char* reason;
  const char* next_step;
};
class CudaDoubleAbsent : public CudaDoubleTest, public testing::WithParamInterface<Absent> {};

TEST_P(CudaDoubleAbsent, IsAReasonWithANextStep) {
  double_.set(GetParam().settings);
  const Discovery found = double_.discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_TRUE(contains(found.reason, GetParam().reason)) << found.reason;
  EXPECT_TRUE(contains(found.next_step, GetParam().next_step)) << found.next_step;
}

INSTANTIATE_TEST_SUITE_P(
    Reasons, CudaDoubleAbsent,
    testing::Values(Absent{"init=100", "sees no NVIDIA GPU", "nvidia-smi"},
                    Absent{"init=803", "different versions", "restart"},
                    Absent{"init=34", "stub", "LD_LIBRARY_PATH"},
                    Absent{"init=804", "forward-compatibility", "compat"},
                    Absent{"init=802", "service", "fabricmanager"},
                    Absent{"init=999", "does not start", "nvidia-smi"},
                    Absent{"devices=0", "offers no GPU", "CUDA_VISIBLE_DEVICES"},
                    Absent{"driver=10020",
                           "too old: it implements CUDA 10.2, and CUDA 11.2 is needed", "update"},
                    Absent{"capability=35", "compute capability 3.5, and 5.0 is needed", "OpenCL"},
                    Absent{"prohibited=1", "prohibited", "nvidia-smi -c DEFAULT"},
                    Absent{"capability=61,oldest=75",
                           "compiles for compute capability 7.5 and newer, this card has 6.1",
                           "prism setup cuda"},
                    Absent{"driver=12040,nvrtc=13000",
                           "NVRTC 13.0 is newer than the driver (CUDA 12.4)", "prism setup cuda"},
                    Absent{"driver=12020,nvrtc=12090,capability=103,newest=90",
                           "does not know compute capability 10.3", "prism setup cuda"}));

TEST_F(CudaDoubleTest, HiddenCompilerIsAReason) {
  const auto hidden = double_.variable("PRISM_NVRTC_LIBRARY", double_.folder().string());
  const Discovery found = double_.discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_TRUE(contains(found.reason, "Double of a GPU: NVRTC")) << found.reason;
  EXPECT_TRUE(contains(found.next_step, "prism setup cuda")) << found.next_step;
  EXPECT_TRUE(contains(found.next_step, "Vulkan")) << found.next_step;
}

TEST_F(CudaDoubleTest, MissingDriverIsAReason) {
  const auto hidden = double_.variable("PRISM_CUDA_LIBRARY", "/no/such/libcuda.so.1");
  const Discovery found = double_.discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_TRUE(contains(found.reason, "PRISM_CUDA_LIBRARY names /no/such/libcuda.so.1"))
      << found.reason;
  EXPECT_FALSE(found.next_step.empty());
}

TEST_F(CudaDoubleTest, UnknownArchitectureIsCompiledForTheNearest) {
  double_.set("capability=103,nvrtc=12090,driver=13000");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 1u) << found.reason;
  const Device device(found.devices[0], "");
  EXPECT_NO_THROW(device.compile(scale_kernel()));
}

// --- work

TEST_F(CudaDoubleTest, RunsAKernel) {
  const Device device = double_.device();
  const std::vector<float> x = counting(1000);
  const Buffer from = device.upload(x), to = device.allocate(x.size() * 4);
  device.queue().launch(device.compile(scale_kernel()), 16, {from, to}, {1000u, 2.0f});
  const auto y = device.download<float>(to);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i]) << i;
}

TEST_F(CudaDoubleTest, LargeAndSmallWritesKeepTheirOrder) {
  const Device device = double_.device();
  Queue& queue = device.queue();
  // Larger than both staging slots together, followed by many small writes.
  std::vector<float> values = counting(5 << 20);
  const Buffer buffer = device.upload(values);
  std::vector<float> piece(100000);
  for (size_t at = 0; at < values.size(); at += 300000) {
    for (size_t i = 0; i < piece.size(); ++i) piece[i] = static_cast<float>(at + i);
    const size_t count = std::min(piece.size(), values.size() - at);
    queue.write(buffer, std::as_bytes(std::span(piece).first(count)), at * 4);
    std::copy_n(piece.begin(), count, values.begin() + static_cast<ptrdiff_t>(at));
  }
  EXPECT_EQ(device.download<float>(buffer), values);
  std::vector<float> middle(3);
  queue.read(buffer, std::as_writable_bytes(std::span(middle)), 300001 * 4);
  EXPECT_EQ(middle[0], values[300001]);
}

TEST_F(CudaDoubleTest, EventsTellTimeAndOrder) {
  const Device device = double_.device();
  const Buffer buffer = device.upload(counting(64));
  Queue& queue = device.queue();
  const Event before = queue.record_event();
  queue.launch(device.compile(add_one_kernel()), 1, {buffer}, {64u});
  const Event after = queue.record_event();
  EXPECT_FALSE(after.done());
  EXPECT_GE(after.ms_since(before), 0.0);
  EXPECT_TRUE(after.done());
  queue.wait();
}

TEST_F(CudaDoubleTest, RecordingOverlapsLaunchesButNotCopies) {
  const Device device = double_.device();
  const Program program = device.compile(add_one_kernel());
  const Buffer a = device.upload(counting(64)), b = device.allocate(64 * 4);
  Queue& queue = device.queue();
  const CommandGraph recording = queue.record([&] {
    queue.launch(program, 1, {a}, {64u});
    queue.launch(program, 1, {a}, {64u});  // may start early
    queue.launch(program, 1, {a}, {64u});  // may start early
    queue.copy(b, a, 64 * 4);
    queue.launch(program, 1, {b}, {64u});  // follows a copy: may not start early
  });
  EXPECT_EQ(double_.count("overlapped_launches"), 2);
  EXPECT_EQ(double_.count("launches"), 0);
  queue.replay(recording);
  queue.replay(recording);
  const auto values = device.download<float>(b);
  EXPECT_EQ(values[5], 5 + 6 + 1);
  EXPECT_EQ(device.download<float>(a)[5], 5 + 6);
  EXPECT_EQ(double_.count("graph_launches"), 2);
}

TEST_F(CudaDoubleTest, NoOverlapOnCardsWithoutIt) {
  double_.set("capability=86");
  const Device device = double_.device();
  const Program program = device.compile(add_one_kernel());
  const Buffer a = device.upload(counting(64));
  Queue& queue = device.queue();
  const CommandGraph recording = queue.record([&] {
    queue.launch(program, 1, {a}, {64u});
    queue.launch(program, 1, {a}, {64u});
  });
  EXPECT_EQ(double_.count("overlapped_launches"), 0);
  queue.replay(recording);
  EXPECT_EQ(device.download<float>(a)[1], 3.0f);
}

TEST_F(CudaDoubleTest, LargeSharedMemoryIsAskedForAtTheLaunch) {
  using namespace dsl;
  const Device device = double_.device();
  const Kernel reverse = kernel("reverse_large", 256, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto tile = shared(f32, 16384);  // 64 KiB
    for_(local_id(), 16384u, group_size(), [&](Value i) { tile[i] = x[i]; });
    barrier();
    for_(local_id(), 16384u, group_size(), [&](Value i) { y[i] = tile[16383u - i]; });
  });
  const std::vector<float> x = counting(16384);
  const Buffer from = device.upload(x), to = device.allocate(x.size() * 4);
  device.queue().launch(device.compile(reverse), 1, {from, to});
  const auto y = device.download<float>(to);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[x.size() - 1 - i]) << i;
}

// --- failures

TEST_F(CudaDoubleTest, AllocationBeyondMemoryNamesDeviceAskedAndFree) {
  double_.set("memory=1073741824");
  const Device device = double_.device();
  const Buffer half = device.allocate(512ull << 20);
  const Error error = error_of([&] { device.allocate(3ull << 30); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(contains(error.what(), "cuda:0 (Double of a GPU)")) << error.what();
  EXPECT_TRUE(contains(error.what(), "allocating 3.00 GiB")) << error.what();
  EXPECT_TRUE(contains(error.what(), "512 MiB of 1.00 GiB are free")) << error.what();
}

TEST_F(CudaDoubleTest, TheAllocationThatFailsIsTheOneReported) {
  const Device device = double_.device();
  double_.set("fail_allocation=3");
  const Buffer first = device.allocate(16), second = device.allocate(16);
  EXPECT_EQ(error_of([&] { device.allocate(16); }).code(), ErrorCode::kOutOfMemory);
  EXPECT_TRUE(device.allocate(16));
}

TEST_F(CudaDoubleTest, LostDeviceIsToldAtTheWaitAndNamesTheKernel) {
  const Device device = double_.device();
  const Program program = device.compile(add_one_kernel());
  const Buffer buffer = device.upload(counting(64));
  Queue& queue = device.queue();
  queue.wait();
  double_.set("lose_launch=2");
  queue.launch(program, 1, {buffer}, {64u});
  EXPECT_NO_THROW(queue.launch(program, 1, {buffer}, {64u}));
  const Error error = error_of([&] { queue.wait(); });
  EXPECT_EQ(error.code(), ErrorCode::kDeviceLost);
  EXPECT_TRUE(contains(error.what(), "kernel add_one")) << error.what();
  EXPECT_TRUE(contains(error.what(), "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"))
      << error.what();
  EXPECT_TRUE(contains(error.what(), "cuda:0 (Double of a GPU)")) << error.what();
  // A lost device stays lost for every operation.
  EXPECT_EQ(error_of([&] { device.allocate(16); }).code(), ErrorCode::kDeviceLost);
  EXPECT_EQ(error_of([&] { device.download<float>(buffer); }).code(), ErrorCode::kDeviceLost);
  EXPECT_EQ(error_of([&] { device.free_bytes(); }).code(), ErrorCode::kDeviceLost);
}

TEST_F(CudaDoubleTest, DeviceLostInAReplayNamesTheRecording) {
  const Device device = double_.device();
  const Program program = device.compile(add_one_kernel());
  const Buffer buffer = device.upload(counting(64));
  Queue& queue = device.queue();
  double_.set("lose_launch=2");
  const CommandGraph recording = queue.record([&] {
    queue.launch(program, 1, {buffer}, {64u});
    queue.launch(program, 1, {buffer}, {64u});
  });
  queue.replay(recording);
  const Error error = error_of([&] { queue.wait(); });
  EXPECT_EQ(error.code(), ErrorCode::kDeviceLost);
  EXPECT_TRUE(contains(error.what(), "a recording of 2 launches, the last of kernel add_one"))
      << error.what();
}

TEST_F(CudaDoubleTest, RefusedLaunchIsKeptForTheWaitAndThenForgotten) {
  const Device device = double_.device();
  const Program program = device.compile(add_one_kernel());
  const Buffer buffer = device.upload(counting(64));
  Queue& queue = device.queue();
  double_.set("refuse_launch=1");
  EXPECT_NO_THROW(queue.launch(program, 1, {buffer}, {64u}));
  queue.launch(program, 1, {buffer}, {64u});
  const Error error = error_of([&] { queue.wait(); });
  EXPECT_EQ(error.code(), ErrorCode::kDriver);
  EXPECT_TRUE(contains(error.what(), "launching kernel add_one with 1 x 1 x 1 groups of 64"))
      << error.what();
  EXPECT_NO_THROW(queue.wait());
  EXPECT_EQ(device.download<float>(buffer)[1], 2.0f);
}

TEST_F(CudaDoubleTest, RefusedTextShowsLogNumberedSourceAndFile) {
  const Device device = double_.device();
  double_.set("fail_compile=1");
  const Error error = error_of([&] { device.compile(scale_kernel()); });
  EXPECT_EQ(error.code(), ErrorCode::kCompile);
  const std::string message = error.what();
  EXPECT_TRUE(contains(message, "the double was told to refuse")) << message;
  EXPECT_TRUE(contains(message, "    1 | ")) << message;
  EXPECT_TRUE(contains(message, ".cu\n")) << message;
}

// --- the self-check of devices

SelfCheck check_few(const Device& device) {
  SelfCheckOptions options;
  options.kernels = {"iota", "transpose", "sum_rows"};  // plain, with shared memory, with subgroups
  return self_check(device, options);
}

TEST_F(CudaDoubleTest, RightResultsPassTheSelfCheck) {
  const SelfCheck check = check_few(double_.device());
  EXPECT_EQ(check.kernels.size(), 3u);
  EXPECT_TRUE(check.right()) << check.complaint();
}

TEST_F(CudaDoubleTest, WrongResultsAreCaughtByTheSelfCheck) {
  const Device device = double_.device();
  double_.set("wrong_results=1");
  const SelfCheck check = check_few(device);
  EXPECT_EQ(check.count(CheckOutcome::wrong), 3u) << check.complaint();
  EXPECT_TRUE(contains(check.complaint(), "iota wrong")) << check.complaint();
}

TEST_F(CudaDoubleTest, LostDeviceFailsTheSelfCheckWithoutThrowing) {
  const Device device = double_.device();
  double_.set("lose_launch=1");
  const SelfCheck check = check_few(device);
  EXPECT_EQ(check.count(CheckOutcome::failed), 3u) << check.complaint();
  EXPECT_TRUE(contains(check.complaint(), "CUDA_ERROR_ILLEGAL_ADDRESS")) << check.complaint();
}

// --- the cache on disk

TEST_F(CudaDoubleTest, CompiledKernelIsFoundByTheNextProcess) {
  for (int process = 0; process < 3; ++process) {
    const Device device = double_.device();  // a new device, as in a new process
    device.compile(scale_kernel());
  }
  EXPECT_EQ(double_.count("compiles"), 1);
  EXPECT_EQ(double_.count("module_loads"), 3);
}

TEST_F(CudaDoubleTest, AnotherCompilerVersionCompilesAnew) {
  double_.device().compile(scale_kernel());
  double_.set("nvrtc=12080");
  double_.device().compile(scale_kernel());
  EXPECT_EQ(double_.count("compiles"), 2);
}

TEST_F(CudaDoubleTest, DamagedCacheFileIsRebuilt) {
  double_.device().compile(scale_kernel());
  int damaged = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_folder() / "cuda")) {
    if (!entry.is_regular_file()) continue;
    std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
    ++damaged;
  }
  ASSERT_EQ(damaged, 1);
  double_.device().compile(scale_kernel());
  EXPECT_EQ(double_.count("compiles"), 2);
  double_.device().compile(scale_kernel());
  EXPECT_EQ(double_.count("compiles"), 2);
}

TEST_F(CudaDoubleTest, BinaryTheDriverRefusesIsRebuilt) {
  double_.device().compile(scale_kernel());
  double_.set("refuse_module=1");
  EXPECT_NO_THROW(double_.device().compile(scale_kernel()));
  EXPECT_EQ(double_.count("compiles"), 2);
}

// Run by the test below, in separate processes.
TEST_F(CudaDoubleTest, DISABLED_CompilesManyKernels) {
  const char* shared = std::getenv("PRISM_TEST_CUDA_DOUBLE_CACHE");
  ASSERT_NE(shared, nullptr);
  const auto cache = double_.variable("PRISM_CACHE_DIR", shared);
  const Device device = double_.device();
  for (int i = 0; i < 4; ++i) device.compile(scale_kernel("shared_kernel_" + std::to_string(i)));
}

TEST_F(CudaDoubleTest, ProcessesWritingTheCacheAtOnceDoNoHarm) {
  std::vector<std::thread> processes;
  std::atomic<int> failed{0};
  const std::string cache = cache_folder().string();
  const auto shared = double_.variable("PRISM_TEST_CUDA_DOUBLE_CACHE", cache);
  for (int i = 0; i < 3; ++i)
    processes.emplace_back(
        [&] { failed += test::run_self("CudaDoubleTest.DISABLED_CompilesManyKernels") != 0; });
  for (std::thread& process : processes) process.join();
  EXPECT_EQ(failed, 0);
  const Device device = double_.device();
  for (int i = 0; i < 4; ++i) device.compile(scale_kernel("shared_kernel_" + std::to_string(i)));
  EXPECT_EQ(double_.count("compiles"), 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache_folder()))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

TEST_F(CudaDoubleTest, DumpedTextCanBeReplaced) {
  const auto dump = double_.variable("PRISM_DUMP", (double_.folder() / "dump").string());
  double_.device().compile(scale_kernel());
  std::filesystem::path text;
  for (const auto& entry : std::filesystem::directory_iterator(double_.folder() / "dump"))
    if (entry.path().extension() == ".cu") text = entry.path();
  ASSERT_FALSE(text.empty());
  EXPECT_TRUE(contains(text.filename().string(), "scale")) << text;
  std::filesystem::create_directories(text.parent_path() / "replace");
  std::ofstream(text.parent_path() / "replace" / text.filename())
      << "// a comment\n#error replaced\n";
  const Error error = error_of([&] { double_.device().compile(scale_kernel()); });
  EXPECT_TRUE(contains(error.what(), "#error replaced")) << error.what();
}

}  // namespace
}  // namespace prism
