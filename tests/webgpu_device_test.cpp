// The WebGPU backend by wgpu-native and by Dawn, on the adapter each of them finds first.
#include "backends/webgpu/webgpu_backend.h"

#include <cstring>
#include <iostream>
#include <map>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "backends/webgpu/webgpu_device.h"
#include "base/error.h"
#include "dsl/dsl.h"
#include "grad/suite.h"
#include "kernels/library.h"
#include "ops/elementwise.h"
#include "runtime/case_run.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/wgsl.h"

namespace prism {
namespace {

using namespace dsl;

std::vector<std::byte> random_bytes(std::mt19937_64& engine, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine());
  return bytes;
}

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

class WebGpu : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    PRISM_SKIP_WITHOUT(GetParam());
    ASSERT_FALSE(discovery().devices.empty()) << discovery().reason;
  }
  const Discovery& discovery() {
    static auto& known = *new std::map<std::string, Discovery>;  // as long as the library's threads
    const auto [at, fresh] = known.try_emplace(GetParam());
    if (fresh) at->second = make_webgpu_backend(*test::front_end(GetParam()))->discover();
    return at->second;
  }
  Device device() { return Device(discovery().devices[0], "a test"); }
};

TEST_P(WebGpu, TellsWhatItFound) {
  EXPECT_EQ(discovery().reason, "");
  const DeviceInfo& info = discovery().devices[0]->info();
  EXPECT_EQ(info.id, "webgpu:0");
  EXPECT_NE(discovery().found.find(".so"), std::string::npos) << discovery().found;
  EXPECT_NE(info.driver.find("over Vulkan"), std::string::npos) << info.driver;
  EXPECT_FALSE(info.name.empty());
  EXPECT_GT(info.total_bytes, 64u << 20);
  EXPECT_EQ(info.software, info.name.find("llvmpipe") != std::string::npos);
  // The limits of the adapter, not the least that the interface promises.
  EXPECT_GT(info.capabilities.max_group_size, 256u);
  EXPECT_GT(info.capabilities.shared_bytes, 16384u);
  EXPECT_TRUE(info.capabilities.math_f16);
  EXPECT_GE(info.capabilities.max_buffers, 8u);
  if (info.software) {
    EXPECT_EQ(info.capabilities.subgroup_size, 8u);
  }
}

TEST_P(WebGpu, MovesBytesFromAnyPlaceToAny) {
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 engine(seed);
  constexpr size_t kBytes = 1021;
  std::vector<std::byte> model[2];
  Buffer buffers[2];
  Queue queue = device().make_queue();
  for (int i = 0; i < 2; ++i) {
    model[i] = random_bytes(engine, kBytes);
    buffers[i] = device().allocate(kBytes);
    queue.write(buffers[i], model[i]);
  }
  for (int round = 0; round < 60; ++round) {
    const size_t bytes = engine() % 200, to = engine() % (kBytes - 200);
    const size_t from = engine() % (kBytes - 200), a = engine() % 2, b = engine() % 2;
    if (round % 3 == 0) {
      const auto fresh = random_bytes(engine, bytes);
      queue.write(buffers[a], fresh, to);
      std::memcpy(model[a].data() + to, fresh.data(), bytes);
    } else if (a != b || to + bytes <= from || from + bytes <= to) {
      queue.copy(buffers[a], buffers[b], bytes, to, from);
      std::memmove(model[a].data() + to, model[b].data() + from, bytes);
    }
    std::vector<std::byte> got(bytes, std::byte{0xee});
    queue.read(buffers[a], got, to);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), model[a].begin() + static_cast<long>(to)))
        << "round " << round << ", " << bytes << " bytes at " << to;
  }
  for (int i = 0; i < 2; ++i) {
    std::vector<std::byte> got(kBytes);
    queue.read(buffers[i], got);
    EXPECT_EQ(got, model[i]) << i;
  }
}

TEST_P(WebGpu, MovesMoreThanItStagesAtOnce) {
  constexpr size_t kWords = (70u << 20) / 4 + 1;
  std::vector<uint32_t> sent(kWords), got(kWords);
  for (size_t i = 0; i < kWords; ++i) sent[i] = static_cast<uint32_t>(i * 2654435761u);
  const Buffer buffer = device().allocate(kWords * 4);
  Queue queue = device().make_queue();
  queue.write(buffer, std::as_bytes(std::span(sent)));
  queue.read(buffer, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, sent);
}

// One buffer read and written by a launch at different ranges, the same range read twice, and all
// of it again from a recording.
TEST_P(WebGpu, ReadsAndWritesRangesOfOneBuffer) {
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
    queue.launch(program, 2, {range(3), range(3), range(0)}, {kCount});
    queue.copy(arena, arena, kCount * 4, kRange, 0);
  };
  const auto model_work = [&] {
    const auto sum = [&](uint32_t a, uint32_t b, uint32_t y) {
      for (uint32_t i = 0; i < kCount; ++i)
        model[y * kRange / 4 + i] = model[a * kRange / 4 + i] + model[b * kRange / 4 + i] * 3u;
    };
    sum(0, 1, 2), sum(2, 2, 3), sum(3, 3, 0);
    std::copy_n(model.begin(), kCount, model.begin() + kRange / 4);
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
}

TEST_P(WebGpu, ManyLaunchesKeepTheirParameters) {
  const ir::Kernel add_one = kernel("add_at", 32, [] {
    auto y = inout("y", u32);
    auto at = param("at", u32), amount = param("amount", u32);
    if_(local_id() == 0u, [&] { y[at] = y[at] + amount; });
  });
  const Program program = device().compile(add_one);
  Queue queue = device().make_queue();
  std::vector<uint32_t> model(7, 0), got(7);
  const Buffer y = device().allocate(28);
  queue.write(y, std::as_bytes(std::span(model)));
  const auto work = [&] {
    for (uint32_t i = 0; i < 700; ++i) queue.launch(program, 1, {y}, {i % 7, i});
  };
  work();
  const Recording recording = queue.record(work);  // more than one block of parameters
  queue.replay(recording);
  queue.replay(recording);
  for (uint32_t i = 0; i < 700; ++i) model[i % 7] += 3 * i;
  queue.read(y, std::as_writable_bytes(std::span(got)));
  EXPECT_EQ(got, model);
}

TEST_P(WebGpu, TimesGoForward) {
  const Program program = device().compile(weighted_sum());
  Queue queue = device().make_queue();
  constexpr uint32_t kCount = 1 << 20;
  const Buffer a = device().allocate(kCount * 4), y = device().allocate(kCount * 4);
  const Event before = queue.record_event();
  queue.launch(program, kCount / 64, {a, a, y}, {kCount});
  const Event after = queue.record_event();
  after.wait();
  EXPECT_TRUE(before.done());
  EXPECT_GT(after.ms_since(before), 0.0);
  EXPECT_LT(after.ms_since(before), 60000.0);
}

TEST_P(WebGpu, RefusesInTheLibrarysWords) {
  const ir::Kernel wrong = kernel("wrong_text", 32, [] {
    auto y = out("y", u32);
    y[local_id()] = raw("wgsl", "{r} = no_such_function({0});", {local_id()}, {u32, 1},
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
    EXPECT_NE(std::string(error.what()).find("webgpu:0"), std::string::npos) << error.what();
  }
}

// A launch the library objects to: told at the wait, in its words, and the queue goes on.
TEST_P(WebGpu, KeepsAFailureUntilTheWait) {
  DeviceDriver& driver = *discovery().devices[0];
  const ir::Kernel lowered = lower(weighted_sum(), driver.info().capabilities);
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
  call.bindings = off;  // 4 is no multiple of 32, the least alignment there is
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

TEST_P(WebGpu, ALostDeviceIsAnError) {
  // A device of its own: it does not come back.
  const Discovery own = make_webgpu_backend(*test::front_end(GetParam()))->discover();
  auto& driver = static_cast<webgpu::DeviceOfWebGpu&>(*own.devices.at(0));
  const auto memory = driver.allocate(64);
  const auto queue = driver.make_queue();
  queue->wait();
  driver.context()->api->DeviceDestroy(driver.context()->device.get());
  const auto code_of = [](const auto& work) -> std::optional<ErrorCode> {
    try {
      work();
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  const std::vector<std::byte> bytes(64);
  EXPECT_EQ(code_of([&] {
              queue->write(*memory, 0, bytes);
              queue->wait();
            }),
            ErrorCode::kDeviceLost);
  EXPECT_EQ(code_of([&] { driver.allocate(64); }), ErrorCode::kDeviceLost);
  std::vector<std::byte> got(64);
  EXPECT_EQ(code_of([&] { queue->read(*memory, 0, got); }), ErrorCode::kDeviceLost);
}

// The whole library is compared as printed text in wgsl_device_test; here one case of every fourth
// kernel takes the way a user's launch takes, other kernels at each run.
TEST_P(WebGpu, KernelsOfTheLibraryAreRight) {
  const size_t first = std::random_device{}() % 4;
  std::cout << "every fourth kernel from " << first << " on" << std::endl;
  size_t ran = 0, tried = 0;
  for (size_t i = first; i < kernel_library().size(); i += 4, ++tried) {
    const LibraryKernel& entry = kernel_library()[i];
    const ir::Kernel kernel = entry.make();
    const auto cases = entry.cases(1, true);
    try {
      const Contents found = run_case(device(), kernel, cases.at(0));
      EXPECT_EQ(compare(cases[0], kernel, found), "") << entry.name << " " << cases[0].name;
      ++ran;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotSupported) << entry.name << ": " << error.what();
    }
  }
  EXPECT_GE(ran + 1, tried) << "more than one was refused";
}

// WebGPU has no 64-bit numbers: it holds them, and the CPU does the rest, gathering included.
TEST_P(WebGpu, HoldsNumbersItCannotComputeWith) {
  std::vector<int64_t> values(15);
  std::iota(values.begin(), values.end(), int64_t{1} << 40);
  const Tensor x = from_vector(values, {3, 5}, device());
  const std::vector<int64_t> got = (-x.transpose()).to_vector<int64_t>();
  ASSERT_EQ(got.size(), 15u);
  for (size_t i = 0; i < 15; ++i) EXPECT_EQ(got[i], -values[i % 3 * 5 + i / 3]) << i;
}

TEST_P(WebGpu, OpsOfTensorsAreRight) {
  SuiteOptions options;
  options.seed = std::random_device{}();
  options.cases = 100;
  options.programs = 24;
  const SuiteResult result = run_suite(device(), options);
  std::cout << "seed " << result.seed << ": " << result.right() << " of " << result.ran()
            << " right, " << result.programs << " programs" << std::endl;
  EXPECT_GT(result.ran(), 0u);
  for (const CaseResult& wrong : result.wrong)
    ADD_FAILURE() << wrong.op << " " << wrong.what << ": " << wrong.reason;
}

INSTANTIATE_TEST_SUITE_P(Libraries, WebGpu, testing::Values(test::kWgpu, test::kDawn),
                         [](const auto& library) {
                           return std::string(library.param) == test::kWgpu ? "wgpu" : "dawn";
                         });

// What stands under the library's name and is none: a reason, whatever it does.
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
