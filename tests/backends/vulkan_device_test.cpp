// The Vulkan backend on any available device, through the driver interface, with the validation
// layer on.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "backends/vulkan/vulkan_backend.h"
#include "lower/lower.h"
#include "prism/dtype.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "runtime/driver.h"
#include "support/backend_cases.h"
#include "support/run_program.h"

namespace prism {
namespace {

using namespace dsl;

// Every way of binding buffers and accessing memory is tested, whatever the device would choose.
struct Way {
  const char* name;
  bool push_descriptors;
  bool in_place;
};

Discovery discover(const Way& way) {
  setenv("PRISM_VULKAN_VALIDATION", "1", 1);
  VulkanOptions options;
  options.push_descriptors = way.push_descriptors;
  options.in_place = way.in_place;
  options.copies_by_kernel = !way.in_place;
  return make_vulkan_backend(options)->discover();
}

class VulkanDevice : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    Discovery found = discover(GetParam());
    if (found.devices.empty()) GTEST_SKIP() << "no Vulkan device: " << found.reason;
    device_ = found.devices.front();
    queue_ = device_->make_queue();
  }

  const ir::Capabilities& capabilities() const { return device_->info().capabilities; }

  struct Compiled {
    ir::Kernel lowered;
    std::unique_ptr<ProgramDriver> program;
  };
  Compiled compile(const Kernel& kernel, const LaunchVariant& variant = {}) {
    Compiled compiled{lower(kernel, capabilities(), variant), nullptr};
    compiled.program = device_->compile(compiled.lowered);
    return compiled;
  }

  void launch(const Compiled& compiled, std::array<uint32_t, 3> groups,
              const std::vector<MemoryDriver*>& buffers, const std::vector<uint32_t>& params = {}) {
    std::vector<Binding> bindings;
    for (MemoryDriver* memory : buffers) bindings.push_back({memory, 0, memory->bytes()});
    LaunchCall call;
    call.program = compiled.program.get();
    call.kernel = &compiled.lowered;
    call.groups = groups;
    call.bindings = bindings;
    call.params = params;
    queue_->launch(call);
  }

  std::unique_ptr<MemoryDriver> upload(const std::vector<uint32_t>& values) {
    auto memory = device_->allocate(values.size() * 4);
    queue_->write(*memory, 0, std::as_bytes(std::span(values)));
    return memory;
  }
  std::vector<uint32_t> download(MemoryDriver& memory) {
    std::vector<uint32_t> values(memory.bytes() / 4);
    queue_->read(memory, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }

  static Kernel add_one() {
    return kernel("add_one", 64, [] {
      auto y = inout("y", u32);
      auto count = param("count", u32);
      auto step = param("step", u32);
      auto i = global_id();
      if_(i < count, [&] { y[i] = y[i] + step; });
    });
  }

  std::shared_ptr<DeviceDriver> device_;
  std::unique_ptr<QueueDriver> queue_;
};

TEST_P(VulkanDevice, SaysWhatItIs) {
  const DeviceInfo& info = device_->info();
  EXPECT_NE(info.driver.find("Vulkan 1."), std::string::npos) << info.driver;
  EXPECT_TRUE(info.card.starts_with("uuid:") || info.card.find(':') == 4) << info.card;
  EXPECT_GE(capabilities().max_group_size, 128u);
}

class VulkanCases : public testing::TestWithParam<std::tuple<Way, test::BackendCase>> {};

TEST_P(VulkanCases, Hold) {
  const auto& [way, which] = GetParam();
  test::BackendUnderTest backend;
  backend.dialect = "spirv";
  backend.discover = [way = way] { return discover(way); };
  backend.cannot = {
      {"RefusesInTheCompilersWords", "SPIR-V is words that a kernel cannot write by hand"},
      {"ALostDeviceIsAnError", "Vulkan has no call that loses a device"}};
  const Discovery found = discover(way);
  if (found.devices.empty()) GTEST_SKIP() << "no Vulkan device: " << found.reason;
  test::run_backend_case(which, backend, Device(found.devices.front(), "a test"));
}

TEST_P(VulkanDevice, CopiesAtOddOffsetsKeepEveryByte) {
  // More than the staging ring holds, and not a whole number of its blocks.
  const size_t size = (18u << 20) + 13;
  std::vector<std::byte> content(size);
  for (size_t i = 0; i < size; ++i) content[i] = static_cast<std::byte>(i * 2654435761u >> 13);
  auto a = device_->allocate(size + 7), b = device_->allocate(size + 7);
  queue_->write(*a, 5, content);
  queue_->copy(*b, 3, *a, 5, size);
  std::vector<std::byte> back(size);
  queue_->read(*b, 3, back);
  EXPECT_TRUE(back == content);
  // Offsets aligned for vectors, with a size that is not a multiple of them.
  queue_->copy(*b, 256, *a, 0, size - 256);
  queue_->read(*a, 0, std::span(content).first(size - 256));
  queue_->read(*b, 256, std::span(back).first(size - 256));
  EXPECT_TRUE(std::equal(back.begin(), back.end() - 256, content.begin()));
}

TEST_P(VulkanDevice, HostSeesUnifiedMemoryInPlace) {
  auto memory = device_->allocate(1024);
  std::byte* host = device_->host_pointer(*memory);
  EXPECT_EQ(host != nullptr, device_->info().unified && GetParam().in_place);
  if (!host) return;
  const std::vector<uint32_t> values = {1, 2, 3};
  queue_->write(*memory, 0, std::as_bytes(std::span(values)));
  queue_->wait();
  EXPECT_EQ(std::memcmp(host, values.data(), 12), 0);
}

TEST_P(VulkanDevice, LaunchesThatDependOnEachOtherRunInOrder) {
  const Compiled step = compile(add_one());
  const Compiled copy = compile(kernel("copy_words", 64, [] {
    auto a = in("a", u32);
    auto y = out("y", u32);
    y[global_id()] = a[global_id()];
  }));
  auto a = upload(std::vector<uint32_t>(256, 0)), b = upload(std::vector<uint32_t>(256, 7)),
       c = upload(std::vector<uint32_t>(256, 9));
  // Read after write, write after read, write after write, with copies between the launches.
  for (uint32_t i = 1; i <= 200; ++i) {
    launch(step, {4, 1, 1}, {a.get()}, {256, 1});
    launch(copy, {4, 1, 1}, {a.get(), b.get()});
    queue_->copy(*c, 0, *b, 0, 1024);
    launch(step, {4, 1, 1}, {b.get()}, {256, 1000});
  }
  EXPECT_EQ(download(*a), std::vector<uint32_t>(256, 200));
  EXPECT_EQ(download(*b), std::vector<uint32_t>(256, 1200));
  EXPECT_EQ(download(*c), std::vector<uint32_t>(256, 200));
}

// Drivers may deviate in both: round the product, and fold x * 0 to 0.
TEST_P(VulkanDevice, FmaRoundsOnceAndZerosKeepTheirSign) {
  const Compiled compiled = compile(kernel("exact", 64, [] {
    auto a = in("a", f32), b = in("b", f32), c = in("c", f32);
    auto y = out("y", f32);
    auto z = out("z", f32);
    auto i = global_id();
    y[i] = fma(a[i], b[i], c[i]);
    z[i] = a[i] * trunc(constant(f32, 0.25)) + (b[i] * cast(f32, i ^ i) - 0.0f);
  }));
  std::mt19937 random(5);
  std::vector<std::vector<float>> inputs(3, std::vector<float>(4096));
  for (size_t i = 0; i < 4096; ++i) {
    const auto value = [&] {
      return std::ldexp(1.0f + static_cast<float>(random() % 4096) * 0x1p-12f,
                        static_cast<int>(random() % 24) - 12) *
             (random() % 2 ? 1.0f : -1.0f);
    };
    inputs[0][i] = value();
    inputs[1][i] = value();
    // Close to the product, so that its rounding matters.
    inputs[2][i] = i % 2 ? value() : -inputs[0][i] * inputs[1][i];
  }
  std::vector<std::unique_ptr<MemoryDriver>> memories;
  std::vector<MemoryDriver*> buffers;
  for (size_t i = 0; i < 5; ++i) {
    memories.push_back(device_->allocate(4096 * 4));
    if (i < 3) queue_->write(*memories[i], 0, std::as_bytes(std::span(inputs[i])));
    buffers.push_back(memories[i].get());
  }
  launch(compiled, {64, 1, 1}, buffers);
  std::vector<float> y(4096), z(4096);
  queue_->read(*memories[3], 0, std::as_writable_bytes(std::span(y)));
  queue_->read(*memories[4], 0, std::as_writable_bytes(std::span(z)));
  size_t wrong = 0;
  for (size_t i = 0; i < 4096; ++i) {
    wrong += y[i] != std::fma(inputs[0][i], inputs[1][i], inputs[2][i]);
    const bool negative = std::signbit(inputs[0][i]) && std::signbit(inputs[1][i]);
    wrong += z[i] != 0.0f || std::signbit(z[i]) != negative;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(VulkanDevice, WideFmaRoundsOnce) {
  if (!capabilities().math_f64) GTEST_SKIP() << "no f64";
  const Compiled compiled = compile(kernel("wide", 64, [] {
    auto x = in("x", f64);
    auto y = out("y", f64);
    auto i = global_id();
    y[i] = fma(x[i * 3u], x[i * 3u + 1u], x[i * 3u + 2u]);
  }));
  std::mt19937_64 random(7);
  std::vector<double> x(3 * 4096), y(4096);
  for (size_t i = 0; i < 4096; ++i) {
    const auto value = [&] {
      return std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 40) - 70);
    };
    x[3 * i] = value();
    x[3 * i + 1] = value();
    x[3 * i + 2] = i % 2 ? value() : -x[3 * i] * x[3 * i + 1];
  }
  x[0] = INFINITY;
  x[3] = 1e300;
  x[4] = 1e300;
  auto from = device_->allocate(x.size() * 8), to = device_->allocate(y.size() * 8);
  queue_->write(*from, 0, std::as_bytes(std::span(x)));
  launch(compiled, {64, 1, 1}, {from.get(), to.get()});
  queue_->read(*to, 0, std::as_writable_bytes(std::span(y)));
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_EQ(y[i], std::fma(x[3 * i], x[3 * i + 1], x[3 * i + 2])) << i;
}

TEST_P(VulkanDevice, PackedHalvesAreRoundedToNearestEven) {
  const Compiled compiled = compile(kernel("pack", 64, [] {
    auto a = in("a", f32);
    auto y = out("y", u32);
    auto z = out("z", f32);
    auto i = global_id();
    const Value packed = pack_f16(a.load(i * 2u, 2));
    y[i] = packed;
    z.store(i * 2u, unpack_f16(packed));
  }));
  std::mt19937 random(6);
  std::vector<float> values(8192);
  for (float& value : values) {
    // Magnitudes over the whole f16 range and beyond both ends; often exactly half way between two
    // values.
    value = std::ldexp(static_cast<float>(1 + random() % 8191) * 0x1p-13f,
                       static_cast<int>(random() % 48) - 28);
    if (random() % 2) value = -value;
  }
  values[0] = INFINITY;
  values[1] = -0.0f;
  values[2] = 65519.0f;
  values[3] = 65520.0f;
  auto a = device_->allocate(values.size() * 4), y = device_->allocate(values.size() * 2),
       z = device_->allocate(values.size() * 4);
  queue_->write(*a, 0, std::as_bytes(std::span(values)));
  launch(compiled, {64, 1, 1}, {a.get(), y.get(), z.get()});
  std::vector<uint16_t> halves(values.size());
  std::vector<float> back(values.size());
  queue_->read(*y, 0, std::as_writable_bytes(std::span(halves)));
  queue_->read(*z, 0, std::as_writable_bytes(std::span(back)));
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(halves[i], f16_from_f32(values[i])) << values[i];
    ASSERT_EQ(back[i], f32_from_f16(halves[i])) << values[i];
  }
}

TEST_P(VulkanDevice, EventsMeasureTheDevice) {
  const Compiled step = compile(add_one());
  auto a = upload(std::vector<uint32_t>(1 << 20, 0));
  std::vector<std::unique_ptr<EventDriver>> events;
  events.push_back(queue_->record_event());
  for (int i = 0; i < 20; ++i) {
    launch(step, {1 << 14, 1, 1}, {a.get()}, {1 << 20, 1});
    events.push_back(queue_->record_event());
  }
  events.back()->wait();
  EXPECT_TRUE(events.front()->done());
  double sum = 0;
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_GE(events[i]->ms_since(*events[i - 1]), 0.0);
    sum += events[i]->ms_since(*events[i - 1]);
  }
  const double whole = events.back()->ms_since(*events.front());
  EXPECT_GT(whole, 0.0);
  EXPECT_LT(whole, 60000.0);
  EXPECT_NEAR(sum, whole, 0.01 * whole);
  EXPECT_NEAR(events.front()->ms_since(*events.back()), -whole, 0.01 * whole);
  queue_ = nullptr;  // events outlive their queue
  EXPECT_TRUE(events.back()->done());
}

TEST_P(VulkanDevice, SmallAllocationsShareBlocksAndAreGivenBack) {
  const uint64_t before = device_->free_bytes();
  std::vector<std::unique_ptr<MemoryDriver>> many;
  for (uint32_t i = 0; i < 5000; ++i) {  // more than drivers must allow as allocations
    many.push_back(device_->allocate(4 + i % 300));
    EXPECT_EQ(many.back()->bytes(), 4 + i % 300);
  }
  const std::vector<uint32_t> one = {11}, two = {22};
  queue_->write(*many[10], 0, std::as_bytes(std::span(one)));
  queue_->write(*many[11], 0, std::as_bytes(std::span(two)));
  std::vector<uint32_t> back(1);
  queue_->read(*many[10], 0, std::as_writable_bytes(std::span(back)));
  EXPECT_EQ(back, one);
  many.clear();
  auto large = device_->allocate(64 << 20);
  large.reset();
  EXPECT_GE(device_->free_bytes() + (64u << 20), before);
}

TEST_P(VulkanDevice, RangesOutsideABufferAreRefused) {
  auto memory = device_->allocate(16);
  std::vector<std::byte> content(8);
  EXPECT_THROW(queue_->write(*memory, 12, content), Error);
  EXPECT_THROW(queue_->read(*memory, UINT64_MAX, content), Error);
  EXPECT_THROW(queue_->copy(*memory, 0, *memory, 9, 8), Error);
}

TEST_P(VulkanDevice, TheValidationLayerIsHeard) {
  if (std::filesystem::exists(
          "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json") == false)
    GTEST_SKIP() << "no validation layer: apt install vulkan-validationlayers";
  const Compiled step = compile(add_one());
  auto memory = upload(std::vector<uint32_t>(64, 0));
  const std::vector<Binding> bindings = {{memory.get(), 4, 60}};  // misaligned for every device
  const std::vector<uint32_t> params = {1, 1};
  LaunchCall call;
  call.program = step.program.get();
  call.kernel = &step.lowered;
  call.bindings = bindings;
  call.params = params;
  queue_->launch(call);
  try {
    queue_->wait();
    FAIL() << "a misaligned binding went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDriver);
    EXPECT_NE(std::string(error.what()).find("minStorageBufferOffsetAlignment"), std::string::npos)
        << error.what();
  }
}

TEST_P(VulkanDevice, CompiledKernelsAreKeptOnDisk) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable cache("PRISM_CACHE_DIR", folder.path().string());
  const auto files = [&] {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  };
  auto run = [&] {
    const Compiled step = compile(add_one());
    auto memory = upload(std::vector<uint32_t>(64, 1));
    launch(step, {1, 1, 1}, {memory.get()}, {64, 1});
    EXPECT_EQ(download(*memory), std::vector<uint32_t>(64, 2));
  };
  run();
  ASSERT_EQ(files().size(), 1u);
  const auto written = std::filesystem::last_write_time(files()[0]);
  run();
  EXPECT_EQ(std::filesystem::last_write_time(files()[0]), written)
      << "compiled again and written again";
  test::write_file(files()[0], "not a cache file");
  run();
  EXPECT_NE(test::read_file(files()[0]), "not a cache file") << "a corrupt file was left";
}

TEST_P(VulkanDevice, AFileInTheDumpFolderStandsInForAKernel) {
  const test::TemporaryFolder folder;
  const test::ScopedVariable dump("PRISM_DUMP", folder.path().string());
  compile(add_one());
  std::filesystem::path spirv;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().extension() == ".spv") spirv = entry.path();
  ASSERT_FALSE(spirv.empty());
  std::filesystem::create_directory(folder.path() / "replace");
  test::write_file(folder.path() / "replace" / spirv.filename(), "no SPIR-V");
  try {
    compile(add_one());
    ADD_FAILURE() << "the file was not used";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompile);
    EXPECT_NE(std::string(error.what()).find("not SPIR-V"), std::string::npos) << error.what();
  }
  std::filesystem::copy_file(spirv, folder.path() / "replace" / spirv.filename(),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_NO_THROW(compile(add_one()));
}

const auto kWays =
    testing::Values(Way{"push_in_place", true, true}, Way{"sets_staged", false, false});
INSTANTIATE_TEST_SUITE_P(Ways, VulkanDevice, kWays,
                         [](const auto& way) { return std::string(way.param.name); });
INSTANTIATE_TEST_SUITE_P(Ways, VulkanCases,
                         testing::Combine(kWays, testing::ValuesIn(test::backend_cases())),
                         [](const auto& which) {
                           return std::get<0>(which.param).name +
                                  ("_" + std::get<1>(which.param).name);
                         });

TEST(VulkanBackend, SaysWhyThereIsNothing) {
  VulkanOptions options;
  options.libraries = {"/nonexistent/libvulkan.so.1"};
  Discovery found = make_vulkan_backend(options)->discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_NE(found.reason.find("cannot be opened"), std::string::npos) << found.reason;
  EXPECT_NE(found.next_step.find("install"), std::string::npos) << found.next_step;

  options.libraries = {"libm.so.6"};
  found = make_vulkan_backend(options)->discover();
  EXPECT_NE(found.reason.find("is not a Vulkan library"), std::string::npos) << found.reason;

  // The loader reads these variables for drivers, and finds none.
  const test::ScopedVariable old_name("VK_ICD_FILENAMES", "/nonexistent/icd.json");
  const test::ScopedVariable new_name("VK_DRIVER_FILES", "/nonexistent/icd.json");
  found = make_vulkan_backend()->discover();
  EXPECT_TRUE(found.devices.empty());
  EXPECT_FALSE(found.reason.empty());
  EXPECT_FALSE(found.next_step.empty());
}

}  // namespace
}  // namespace prism
