// The OpenCL backend on every OpenCL device of this machine, through the interface that backends
// implement.
#include "backends/opencl/opencl_backend.h"

#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_program.h"
#include "backends/opencl/opencl_queue.h"
#include "base/cache.h"
#include "dsl/dsl.h"
#include "lower/lower.h"
#include "print/printer.h"
#include "support/op_cases.h"
#include "support/op_kernels.h"

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

// The cache folder of one test.
class OwnCache {
 public:
  OwnCache()
      : folder_(fs::temp_directory_path() / ("prism-opencl-test-" + std::to_string(getpid()) + "-" +
                                             std::to_string(counter()++))) {
    fs::remove_all(folder_);
    if (const char* old = std::getenv("PRISM_CACHE_DIR")) old_ = old;
    setenv("PRISM_CACHE_DIR", folder_.c_str(), 1);
  }
  ~OwnCache() {
    if (old_.empty())
      unsetenv("PRISM_CACHE_DIR");
    else
      setenv("PRISM_CACHE_DIR", old_.c_str(), 1);
    fs::remove_all(folder_);
  }
  const fs::path& folder() const { return folder_; }

 private:
  static int& counter() {
    static int count = 0;
    return count;
  }
  fs::path folder_;
  std::string old_;
};

TEST(OpenClBackend, FindsADeviceOrSaysWhy) {
  if (found().devices.empty()) {
    EXPECT_FALSE(found().reason.empty());
    EXPECT_FALSE(found().next_step.empty());
    GTEST_SKIP() << found().reason;
  }
  EXPECT_FALSE(found().found.empty());
}

// The loader reads its list of drivers once, so a new process looks, with an empty list.
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
  EXPECT_EQ(info.id, "opencl:" + std::to_string(GetParam()));
  EXPECT_EQ(info.backend, "opencl");
  for (const std::string* text : {&info.name, &info.vendor, &info.card, &info.driver})
    EXPECT_FALSE(text->empty());
  EXPECT_GT(info.total_bytes, 1u << 20);
  EXPECT_GT(info.compute_units, 0u);
  const ir::Capabilities& capabilities = info.capabilities;
  EXPECT_EQ(capabilities.dialect, "opencl");
  EXPECT_GE(capabilities.dialect_level, 120u);
  EXPECT_GE(capabilities.max_group_size, 64u);
  EXPECT_GE(capabilities.shared_bytes, 16384u);
  EXPECT_GT(capabilities.max_binding_bytes, 1u << 20);
  EXPECT_GE(capabilities.max_groups[0], 65535u);
  const uint64_t free = device().free_bytes();
  EXPECT_GT(free, 0u);
  EXPECT_LE(free, info.total_bytes);
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
    // Other processes move the host's free memory, so the device's own count is what is compared.
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

TEST_P(OpenClDevice, CopiesOddPieces) {
  auto queue = device().make_queue();
  std::vector<std::byte> bytes(4099);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  auto a = device().allocate(bytes.size()), b = device().allocate(bytes.size());
  queue->write(*a, 0, bytes);
  const std::vector<std::byte> zeros(bytes.size());
  queue->write(*b, 0, zeros);
  queue->copy(*b, 13, *a, 7, 1001);
  queue->write(*b, 4097, std::span(bytes).subspan(0, 1));
  std::vector<std::byte> result(bytes.size());
  queue->read(*b, 0, result);
  std::vector<std::byte> expected = zeros;
  std::memcpy(expected.data() + 13, bytes.data() + 7, 1001);
  expected[4097] = bytes[0];
  EXPECT_EQ(result, expected);
  std::vector<std::byte> part(3);
  queue->read(*a, 4096, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + 4096));
  queue->read(*a, 4099, {});
  EXPECT_THROW(queue->read(*a, 4098, part), Error);
  EXPECT_THROW(queue->copy(*b, 0, *a, 4000, 100), Error);
}

TEST_P(OpenClDevice, AWriteMayBeReusedAtOnce) {
  auto queue = device().make_queue();
  constexpr size_t kCounts[] = {1000, 1u << 20};  // copied aside, and waited for
  for (size_t count : kCounts) {
    std::vector<uint32_t> values(count);
    std::iota(values.begin(), values.end(), 5u);
    auto memory = upload(*queue, values);
    const std::vector<uint32_t> sent = values;
    std::fill(values.begin(), values.end(), 0u);
    EXPECT_EQ(download(*queue, *memory), sent);
  }
}

TEST_P(OpenClDevice, LaunchesAndReads) {
  const ir::Kernel kernel = lowered(affine_kernel());
  auto program = device().compile(kernel);
  auto queue = device().make_queue();
  for (uint32_t count : {1u, 63u, 64u, 1009u}) {
    std::vector<uint32_t> values(count);
    std::iota(values.begin(), values.end(), 0u);
    auto x = upload(*queue, values);
    auto y = upload(*queue, std::vector<uint32_t>(count, 77u));
    launch(*queue, *program, kernel, (count + 63) / 64, {whole(*x), whole(*y)}, {count, 3});
    const auto result = download(*queue, *y);
    for (uint32_t i = 0; i < count; ++i)
      ASSERT_EQ(result[i], i * 3 + 1) << "of " << count << " at " << i;
  }
  auto y = upload(*queue, {5});
  launch(*queue, *program, kernel, 0, {whole(*y), whole(*y)}, {0, 3});
  EXPECT_EQ(download(*queue, *y), std::vector<uint32_t>{5}) << "no groups do nothing";
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
  try {
    launch(*queue, *program, kernel, 1, {{x.get(), 4, 64}, whole(*y)}, {1, 2});
    FAIL() << "an offset of 4 bytes was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("multiple of"), std::string::npos) << error.what();
  }
  EXPECT_THROW(launch(*queue, *program, kernel, 1, {{x.get(), 32768, 64}, whole(*y)}, {1, 2}),
               Error);
}

TEST_P(OpenClDevice, ReplaysWhatItRecorded) {
  const ir::Kernel kernel = lowered(step_kernel());
  auto program = device().compile(kernel);
  auto queue = device().make_queue();
  std::vector<uint32_t> start(320);
  std::iota(start.begin(), start.end(), 0u);
  auto x = upload(*queue, start);
  auto kept = upload(*queue, std::vector<uint32_t>(320, 0u));
  const auto record = [&] {
    queue->begin_recording();
    launch(*queue, *program, kernel, 10, {whole(*x)}, {3});
    launch(*queue, *program, kernel, 10, {whole(*x)}, {5});
    queue->copy(*kept, 0, *x, 0, 320 * 4);
    launch(*queue, *program, kernel, 10, {whole(*x)}, {7});
    EXPECT_THROW(queue->write(*x, 0, std::as_bytes(std::span(start))), Error);
    return queue->end_recording();
  };
  auto recording = record();
  EXPECT_EQ(download(*queue, *x), start) << "recording must not run";
  std::vector<uint32_t> expected = start, expected_kept(320);
  for (int round = 0; round < 50; ++round) {
    queue->replay(*recording);
    for (size_t i = 0; i < start.size(); ++i) {
      expected_kept[i] = (expected[i] * 3 + 1) * 5 + 1;
      expected[i] = expected_kept[i] * 7 + 1;
    }
  }
  EXPECT_EQ(download(*queue, *x), expected);
  EXPECT_EQ(download(*queue, *kept), expected_kept);

  // The loop, which another queue must take, gives the same.
  auto other = device().make_queue();
  other->replay(*recording);
  const auto after = download(*other, *x);
  for (size_t i = 0; i < start.size(); ++i)
    EXPECT_EQ(after[i], ((expected[i] * 3 + 1) * 5 + 1) * 7 + 1);
}

TEST_P(OpenClDevice, UsesTheDriversOwnRecordingWhereItWorks) {
  const auto& context = opencl_device().context();
  if (!context->facts.has_command_buffers) GTEST_SKIP() << "the device lists no command buffers";
  EXPECT_NE(context->command_buffers(), nullptr)
      << "listed, but the first recording did not compute what it should";
}

TEST_P(OpenClDevice, TimesBetweenEvents) {
  const ir::Kernel kernel = lowered(step_kernel());
  auto program = device().compile(kernel);
  auto queue = device().make_queue();
  auto x = upload(*queue, std::vector<uint32_t>(32 * 20000, 1u));
  auto before = queue->record_event();
  for (int i = 0; i < 10; ++i) launch(*queue, *program, kernel, 20000, {whole(*x)}, {3});
  auto after = queue->record_event();
  after->wait();
  EXPECT_TRUE(before->done());
  EXPECT_TRUE(after->done());
  const double ms = after->ms_since(*before);
  EXPECT_GT(ms, 0.0);
  EXPECT_LT(ms, 60000.0);
  EXPECT_DOUBLE_EQ(before->ms_since(*before), 0.0);
}

TEST_P(OpenClDevice, RefusesMoreThanItHas) {
  const uint64_t asked = device().info().total_bytes * 2;
  try {
    device().allocate(asked);
    FAIL() << "twice the memory was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    const std::string message = error.what();
    for (const std::string& part :
         {device().info().id, device().info().name, std::to_string(asked), std::string("free")})
      EXPECT_NE(message.find(part), std::string::npos) << part << " is missing in: " << message;
  }
  EXPECT_THROW(device().allocate(UINT64_MAX), Error);
  EXPECT_EQ(device().allocate(0)->bytes(), 0u);
}

TEST_P(OpenClDevice, ShowsTheCompilersLogBesideTheSource) {
  const OwnCache cache;
  const ir::Kernel broken = lowered(kernel("broken", 64, [] {
    auto y = out("y", u32);
    y[global_id()] = raw("opencl", "{r} = no_such_function({0});", {global_id()}, {u32, 1},
                         [] { return constant(u32, 1); });
  }));
  try {
    device().compile(broken);
    FAIL() << "a call of an unknown function was compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompile);
    const std::string message = error.what();
    for (const char* part : {"broken", " | ", "no_such_function", "the whole text is in "})
      EXPECT_NE(message.find(part), std::string::npos) << part << " is missing in:\n" << message;
    const size_t at = message.find("the whole text is in ") + std::strlen("the whole text is in ");
    const fs::path file = message.substr(at, message.find('\n', at) - at);
    std::ifstream text(file);
    EXPECT_TRUE(text.good()) << file;
  }
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

  // A file cut short or overwritten.
  for (const auto& entry : fs::recursive_directory_iterator(cache.folder()))
    if (entry.is_regular_file()) fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  EXPECT_FALSE(from_cache());
  EXPECT_TRUE(from_cache()) << "the rebuilt binary is kept again";

  // A sound file whose binary the driver refuses, as one of another version.
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
    programs.erase(programs.begin());  // the text stays while one of its kernels is there
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
      << "(__global const uint* x, __global uint* y, uint count, uint factor) "
         "{\n"
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
  kernel.group_size = 1u << 20;  // larger than any device takes: the driver refuses the launch
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

TEST_P(OpenClDevice, QueuesOfTwoThreadsShareAProgram) {
  const ir::Kernel kernel = lowered(affine_kernel());
  auto program = device().compile(kernel);
  std::vector<std::thread> threads;
  std::vector<int> wrong(2, 0);
  for (uint32_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      auto queue = device().make_queue();
      auto x = upload(*queue, std::vector<uint32_t>(64, t + 1));
      auto y = upload(*queue, std::vector<uint32_t>(64, 0u));
      for (uint32_t round = 0; round < 200; ++round) {
        launch(*queue, *program, kernel, 1, {whole(*x), whole(*y)}, {64, round});
        for (uint32_t value : download(*queue, *y)) wrong[t] += value != (t + 1) * round + 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::vector<int>{0, 0}));
}

// Intel's compiler for CPUs gives lanes the value of another subgroup unless it is printed in
// another way.
TEST_P(OpenClDevice, ANegatedValueLivesAcrossABarrier) {
  const ir::Kernel k = lowered(kernel("negated", 64, [] {
    auto x = in("x", f32);
    auto y = out("y", f32);
    auto i = global_id();
    const Value value = x[i];
    barrier();
    const Value negated = -value;
    barrier();
    y[i] = abs(negated) + max(negated, value);
  }));
  auto program = device().compile(k);
  auto queue = device().make_queue();
  std::vector<uint32_t> values(128);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<uint32_t>((static_cast<float>(i % 3) - 1.0f) * static_cast<float>(i));
  auto x = upload(*queue, values), y = upload(*queue, values);
  launch(*queue, *program, k, 2, {whole(*x), whole(*y)}, {});
  const std::vector<uint32_t> result = download(*queue, *y);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::bit_cast<float>(result[i]), std::abs(std::bit_cast<float>(values[i])) * 2) << i;
}

TEST_P(OpenClDevice, AComplementLivesAcrossABarrier) {
  const ir::Kernel k = lowered(kernel("complement", 96, [] {
    auto y = out("y", u32);
    auto number = param("number", i32);
    auto counts = shared(i32, 8), tile = shared(i32, 384);
    const Value i = local_id();
    const Value complement = ~number;
    if_(i < 8u, [&] { counts[i] = cast(i32, i); });
    barrier();
    counts.atomic(AtomicOp::min, rem_trunc(i, constant(u32, 8)),
                  mul_high(number, constant(i32, 32)));
    tile.store(i * 4u, vec(complement, complement, number, complement));
    barrier();
    const Value found = tile.load(rem_trunc(global_id(), constant(u32, 96)) * 4u, 4);
    y[global_id()] = bitcast(u32, found[0] + found[1] * 3 + found[2] * 5 + found[3] * 7);
  }));
  auto program = device().compile(k);
  auto queue = device().make_queue();
  auto y = upload(*queue, std::vector<uint32_t>(192, 0xcdcdcdcd));
  const uint32_t number = 1550401018;
  launch(*queue, *program, k, 2, {whole(*y)}, {number});
  EXPECT_EQ(download(*queue, *y), std::vector<uint32_t>(192, ~number * 11 + number * 5));
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
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpenClDevice);
INSTANTIATE_TEST_SUITE_P(All, OpenClDevice, testing::ValuesIn(device_numbers()),
                         [](const auto& number) {
                           std::string name = found().devices[number.param]->info().name + "_" +
                                              std::to_string(number.param);
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace prism
