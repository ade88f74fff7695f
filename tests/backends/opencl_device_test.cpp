// The OpenCL backend on every OpenCL device of this machine, through the driver interface.
#include "backends/opencl/opencl_backend.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_program.h"
#include "backends/opencl/opencl_queue.h"
#include "base/cache_folder.h"
#include "lower/lower.h"
#include "print/printer.h"
#include "prism/kernel.h"
#include "support/backend_cases.h"
#include "support/kernels/op_cases.h"
#include "support/kernels/op_kernels.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using namespace dsl;

const Discovery& found() {
  static const Discovery discovery = make_opencl_backend()->discover();
  return discovery;
}

ir::Kernel affine_kernel() {
  return kernel("affine", 64, [] {
    auto x = in("x", u32);
    auto y = out("y", u32);
    auto count = param("count", u32);
    auto factor = param("factor", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = x[i] * factor + 1u; });
  });
}

ir::Kernel step_kernel() {
  return kernel("step", 32, [] {
    auto x = inout("x", u32);
    auto factor = param("factor", u32);
    auto i = global_id();
    x[i] = x[i] * factor + 1u;
  });
}

class OpenClDevice : public testing::TestWithParam<size_t> {
 protected:
  DeviceDriver& device() { return *found().devices[GetParam()]; }
  opencl::Device& opencl_device() { return static_cast<opencl::Device&>(device()); }
  ir::Kernel lowered(const ir::Kernel& kernel) {
    return lower(kernel, device().info().capabilities);
  }

  std::unique_ptr<MemoryDriver> upload(QueueDriver& queue, const std::vector<uint32_t>& values) {
    auto memory = device().allocate(values.size() * 4);
    queue.write(*memory, 0, std::as_bytes(std::span(values)));
    return memory;
  }
  std::vector<uint32_t> download(QueueDriver& queue, MemoryDriver& memory) {
    std::vector<uint32_t> values(memory.bytes() / 4);
    queue.read(memory, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }
  static void launch(QueueDriver& queue, ProgramDriver& program, const ir::Kernel& kernel,
                     uint32_t groups, const std::vector<Binding>& bindings,
                     const std::vector<uint32_t>& params) {
    LaunchCall call;
    call.program = &program;
    call.kernel = &kernel;
    call.groups = {groups, 1, 1};
    call.bindings = bindings;
    call.params = params;
    queue.launch(call);
  }
  static Binding whole(MemoryDriver& memory) { return {&memory, 0, memory.bytes()}; }
};

using test::OwnCache;

TEST(OpenClBackend, FindsADeviceOrSaysWhy) {
  if (found().devices.empty()) {
    EXPECT_FALSE(found().reason.empty());
    EXPECT_FALSE(found().next_step.empty());
    GTEST_SKIP() << found().reason;
  }
  EXPECT_FALSE(found().found.empty());
}

// The loader reads its list of drivers once, so a new process runs with an empty list.
TEST(OpenClBackend, SaysThatThereIsNoDriver) {
  const fs::path empty = fs::temp_directory_path() / "prism-no-icd";
  fs::create_directories(empty);
  const char* old = std::getenv("OCL_ICD_VENDORS");
  const std::string kept = old ? old : "";
  setenv("OCL_ICD_VENDORS", empty.c_str(), 1);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const bool right = found().devices.empty() &&
                           found().reason.find("found no driver") != std::string::npos &&
                           found().reason.find(empty.string()) != std::string::npos &&
                           found().next_step.find("pocl-opencl-icd") != std::string::npos;
        std::fprintf(stderr, "reason: %s\n", found().reason.c_str());
        std::_Exit(right ? 0 : 1);
      },
      testing::ExitedWithCode(0), "reason: libOpenCL");
  if (old)
    setenv("OCL_ICD_VENDORS", kept.c_str(), 1);
  else
    unsetenv("OCL_ICD_VENDORS");
}

TEST_P(OpenClDevice, DescribesItself) {
  const DeviceInfo& info = device().info();
  EXPECT_GT(info.compute_units, 0u);
  const ir::Capabilities& capabilities = info.capabilities;
  EXPECT_GE(capabilities.dialect_level, 120u);
  if (info.name.find("pthread") == 0) {  // PoCL's CPU device
    EXPECT_TRUE(info.software);
    EXPECT_TRUE(info.unified);
    EXPECT_FALSE(capabilities.math_f16);
    EXPECT_TRUE(capabilities.math_f64);
    EXPECT_EQ(capabilities.subgroup_size, 0u);
  }
  if (info.driver.find("Intel(R) OpenCL") == 0) {
    EXPECT_TRUE(capabilities.math_f16);
    EXPECT_TRUE(capabilities.dot4);
    EXPECT_TRUE(capabilities.float_atomics);
    EXPECT_GT(capabilities.subgroup_size, 0u);
    EXPECT_EQ(info.card.rfind("uuid:", 0), 0u) << info.card;
  }
}

TEST_P(OpenClDevice, CountsWhatItAllocates) {
  if (device().info().software) {
    // Other processes change the host's free memory, so compare the device's own count.
    const uint64_t before = opencl_device().allocated_bytes();
    auto memory = device().allocate(1u << 20);
    EXPECT_EQ(opencl_device().allocated_bytes(), before + (1u << 20));
    memory.reset();
    EXPECT_EQ(opencl_device().allocated_bytes(), before);
  } else {
    const uint64_t before = device().free_bytes();
    auto memory = device().allocate(64u << 20);
    EXPECT_LE(device().free_bytes(), before - (64u << 20));
  }
}

TEST_P(OpenClDevice, BindsBuffersAtOffsets) {
  const ir::Kernel kernel = lowered(affine_kernel());
  auto program = device().compile(kernel);
  auto queue = device().make_queue();
  std::vector<uint32_t> values(8192);
  std::iota(values.begin(), values.end(), 0u);
  auto x = upload(*queue, values);
  auto y = upload(*queue, std::vector<uint32_t>(8192, 9u));
  launch(*queue, *program, kernel, 1, {{x.get(), 4096, 256}, {y.get(), 8192, 200}}, {50, 2});
  const auto result = download(*queue, *y);
  for (uint32_t i = 0; i < 8192; ++i)
    ASSERT_EQ(result[i], i >= 2048 && i < 2098 ? (1024 + i - 2048) * 2 + 1 : 9u) << i;
  launch(*queue, *program, kernel, 1, {{x.get(), 4, 64}, {y.get(), 12, 8}}, {2, 2});
  EXPECT_EQ(download(*queue, *y)[3], 3u);
  EXPECT_EQ(download(*queue, *y)[4], 5u);
  EXPECT_THROW(launch(*queue, *program, kernel, 1, {{x.get(), 32768, 64}, whole(*y)}, {1, 2}),
               Error);
}

TEST_P(OpenClDevice, UsesTheDriversOwnRecordingWhereItWorks) {
  const auto& context = opencl_device().context();
  if (!context->facts.has_command_buffers) GTEST_SKIP() << "the device lists no command buffers";
  EXPECT_NE(context->command_buffers(), nullptr)
      << "listed, but the first recording did not compute what it should";
}

TEST_P(OpenClDevice, KeepsBinariesAndRebuildsBadOnes) {
  const OwnCache cache;
  const ir::Kernel kernel = lowered(affine_kernel());
  const opencl::DeviceFacts& facts = opencl_device().context()->facts;
  const std::string key = opencl::program_key(facts, print(kernel, facts.info.capabilities).text);
  const auto from_cache = [&] {
    auto program = device().compile(kernel);
    auto queue = device().make_queue();
    auto x = upload(*queue, {1, 2, 3}), y = upload(*queue, {0, 0, 0});
    launch(*queue, *program, kernel, 1, {whole(*x), whole(*y)}, {3, 10});
    EXPECT_EQ(download(*queue, *y), (std::vector<uint32_t>{11, 21, 31}));
    return static_cast<opencl::Program&>(*program).from_cache();
  };
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
  const auto binary = read_cached(opencl::kProgramCache, key);
  ASSERT_TRUE(binary.has_value());

  // A truncated or overwritten file.
  for (const auto& entry : fs::recursive_directory_iterator(cache.folder()))
    if (entry.is_regular_file()) fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache()) << "the rebuilt binary is kept again";

  // An intact file with a binary that the driver rejects, such as one from another version.
  const std::string other = "this is no binary of this driver, whatever its name says";
  ASSERT_TRUE(write_cached(opencl::kProgramCache, key, std::as_bytes(std::span(other))));
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache());
}

TEST_P(OpenClDevice, CompilesSeveralKernelsAsOneText) {
  const OwnCache cache;
  const std::vector<ir::Kernel> kernels = {lowered(affine_kernel()), lowered(step_kernel())};
  for (const bool cached : {false, true}) {
    auto programs = device().compile_together(kernels);
    ASSERT_EQ(programs.size(), 2u);
    auto queue = device().make_queue();
    auto x = upload(*queue, std::vector<uint32_t>(32, 7)), y = upload(*queue, {0, 0, 0});
    launch(*queue, *programs[0], kernels[0], 1, {whole(*x), whole(*y)}, {3, 10});
    launch(*queue, *programs[1], kernels[1], 1, {whole(*x)}, {100});
    programs.erase(programs.begin());  // the program stays alive with its other kernels
    EXPECT_EQ(download(*queue, *y), std::vector<uint32_t>(3, 71));
    EXPECT_EQ(download(*queue, *x), std::vector<uint32_t>(32, 701));
    EXPECT_EQ(static_cast<opencl::Program&>(*programs[0]).from_cache(), cached);
  }
  const auto files = std::distance(fs::recursive_directory_iterator(cache.folder()), {});
  device().compile_together({});
  EXPECT_EQ(files, std::distance(fs::recursive_directory_iterator(cache.folder()), {}));
  const std::vector<ir::Kernel> twice = {kernels[0], kernels[0]};
  EXPECT_THROW(device().compile_together(twice), Error) << "two kernels of one name";
}

TEST_P(OpenClDevice, TakesATextPutInPlaceOfItsOwn) {
  const OwnCache cache;
  const fs::path dump = cache.folder() / "dump";
  setenv("PRISM_DUMP", dump.c_str(), 1);
  const ir::Kernel kernel = lowered(affine_kernel());
  device().compile(kernel);
  fs::path text_file;
  for (const auto& entry : fs::directory_iterator(dump))
    if (entry.path().extension() == ".cl") text_file = entry.path();
  ASSERT_FALSE(text_file.empty()) << "nothing was dumped";
  fs::create_directories(dump / "replace");
  std::ofstream(dump / "replace" / text_file.filename())
      << "__kernel void " << print(kernel, device().info().capabilities).entry
      << "(__global const uint* x, ulong x_offset, __global uint* y, ulong y_offset, uint count, "
         "uint factor) {\n"
         "  if (get_global_id(0) < count) y[get_global_id(0)] = 4242u + factor;\n}\n";
  auto program = device().compile(kernel);
  unsetenv("PRISM_DUMP");
  auto queue = device().make_queue();
  auto y = upload(*queue, {0, 0});
  launch(*queue, *program, kernel, 1, {whole(*y), whole(*y)}, {2, 1});
  EXPECT_EQ(download(*queue, *y), (std::vector<uint32_t>{4243, 4243}));
}

TEST_P(OpenClDevice, KeepsAFailureUntilTheWaitAndNamesTheKernel) {
  ir::Kernel kernel = lowered(step_kernel());
  auto program = device().compile(kernel);
  auto queue = device().make_queue();
  auto x = upload(*queue, std::vector<uint32_t>(320, 1u));
  kernel.group_size = 1u << 20;  // larger than any device allows: the driver rejects the launch
  EXPECT_NO_THROW(launch(*queue, *program, kernel, 1, {whole(*x)}, {3}));
  try {
    queue->wait();
    FAIL() << "a group of a million lanes ran";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("kernel step"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(queue->wait()) << "a failure is told once";
  kernel.group_size = 32;
  launch(*queue, *program, kernel, 10, {whole(*x)}, {3});
  EXPECT_EQ(download(*queue, *x), std::vector<uint32_t>(320, 4u));
}

TEST_P(OpenClDevice, CompilesEveryOperation) {
  const ir::Capabilities& capabilities = device().info().capabilities;
  std::vector<ir::Kernel> kernels = test::op_kernels();
  const auto add = [&](bool has, const std::vector<ir::Kernel>& more) {
    if (has) kernels.insert(kernels.end(), more.begin(), more.end());
  };
  add(true, test::f16_kernels());
  add(capabilities.math_i64, test::i64_kernels());
  add(capabilities.math_f64, test::f64_kernels());
  add(capabilities.device_fence, test::fence_kernels());
  add(true, test::fragment_kernels());
  for (const ir::Kernel& kernel : kernels)
    EXPECT_NO_THROW(device().compile(lowered(kernel))) << kernel.name;
}

TEST_P(OpenClDevice, ComputesEveryOperationAsTheInterpreterDoes) {
  auto queue = device().make_queue();
  for (const test::OpCase& one : test::op_cases()) {
    const ir::Kernel kernel = lowered(one.kernel);
    auto program = device().compile(kernel);
    std::vector<std::unique_ptr<MemoryDriver>> memories;
    std::vector<Binding> bindings;
    for (const auto& content : one.buffers) {
      memories.push_back(device().allocate(content.size()));
      queue->write(*memories.back(), 0, content);
      bindings.push_back(whole(*memories.back()));
    }
    launch(*queue, *program, kernel, 1, bindings, one.params);
    std::vector<std::vector<std::byte>> contents;
    for (const auto& memory : memories) {
      contents.emplace_back(memory->bytes());
      queue->read(*memory, 0, contents.back());
    }
    const auto right = test::right_contents(one, device().info().capabilities);
    EXPECT_EQ(test::difference(one, right, contents), "") << one.kernel.name;
  }
}

std::vector<size_t> device_numbers() {
  std::vector<size_t> numbers(found().devices.size());
  std::iota(numbers.begin(), numbers.end(), size_t{0});
  return numbers;
}
std::string device_name(size_t number) {
  std::string name = found().devices[number]->info().name + "_" + std::to_string(number);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenClDevice);
INSTANTIATE_TEST_SUITE_P(All, OpenClDevice, testing::ValuesIn(device_numbers()),
                         [](const auto& which) { return device_name(which.param); });

class OpenClCases : public testing::TestWithParam<std::tuple<size_t, test::BackendCase>> {};
TEST_P(OpenClCases, Hold) {
  const auto& [number, which] = GetParam();
  test::BackendUnderTest backend;
  backend.dialect = "opencl";
  backend.discover = [] { return make_opencl_backend()->discover(); };
  backend.number = number;
  backend.cannot = {{"ALostDeviceIsAnError", "OpenCL has no call that loses a device"}};
  test::run_backend_case(which, backend, Device(found().devices[number], "a test"));
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenClCases);
INSTANTIATE_TEST_SUITE_P(All, OpenClCases,
                         testing::Combine(testing::ValuesIn(device_numbers()),
                                          testing::ValuesIn(test::backend_cases())),
                         [](const auto& which) {
                           return device_name(std::get<0>(which.param)) + "_" +
                                  std::get<1>(which.param).name;
                         });

}  // namespace
}  // namespace prism
