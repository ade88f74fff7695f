// Queues over a fake device: validation, variants, recordings, failures, lifetimes.
#include <gtest/gtest.h>

#include <thread>

#include "prism/device.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "support/devices/fake_device.h"

namespace prism {
namespace {

using test::FakeDevice;

Kernel add_kernel() {
  using namespace dsl;
  return kernel("add", 64, [] {
    auto a = in("a", f32), b = in("b", f32);
    auto y = out("y", f32);
    auto count = param("count", u32);
    auto i = global_id();
    if_(i < count, [&] { y[i] = a[i] + b[i]; });
  });
}

struct QueueTest : ::testing::Test {
  std::shared_ptr<FakeDevice> driver = std::make_shared<FakeDevice>("fake:0");
  Device device{driver, "test"};

  std::string message(const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void expect_message(const std::function<void()>& work, const std::string& part) {
    const std::string text = message(work);
    EXPECT_NE(text.find(part), std::string::npos) << "said: \"" << text << "\"";
  }
};

TEST_F(QueueTest, WritesAndReadsWholeVectors) {
  const std::vector<uint16_t> values = {1, 2, 3};
  const Buffer buffer = device.upload(values);
  EXPECT_EQ(buffer.bytes(), 6u);
  EXPECT_EQ(buffer.driver().bytes(), 8u) << "kernels may load whole words";
  EXPECT_EQ(device.download<uint16_t>(buffer), values);
}

TEST_F(QueueTest, RefusesAccessBeyondABuffer) {
  const Buffer buffer = device.allocate(8);
  std::vector<std::byte> bytes(8);
  expect_message([&] { device.queue().read(buffer, bytes, 4); }, "bytes 4 to 12 of a buffer of 8");
  expect_message([&] { device.queue().write(buffer, bytes, UINT64_MAX); }, "of a buffer of 8");
  expect_message([&] { device.queue().copy(buffer, buffer, 4, 2, 0); }, "overlap");
}

TEST_F(QueueTest, LaunchPassesBuffersAndParameters) {
  const Program program = device.compile(add_kernel());
  const Buffer a = device.allocate(256), b = device.allocate(128), y = device.allocate(64);
  device.queue().launch(program, 3, {a, b, y}, {16u});
  ASSERT_EQ(driver->log.launches.size(), 1u);
  const auto& seen = driver->log.launches[0];
  EXPECT_EQ(seen.groups, (std::array<uint32_t, 3>{3, 1, 1}));
  ASSERT_EQ(seen.bindings.size(), 3u);
  EXPECT_EQ(seen.bindings[1].memory, &b.driver());
  EXPECT_EQ(seen.bindings[1].bytes, 128u);
  EXPECT_EQ(seen.params, (std::vector<uint32_t>{16}));
  EXPECT_FALSE(seen.folded);
}

TEST_F(QueueTest, LaunchTakesGroupsOfSeveralAxesInBraces) {
  const Program program = device.compile(add_kernel());
  const Buffer a = device.allocate(256), b = device.allocate(128), y = device.allocate(64);
  const uint32_t width = 3, height = 5;
  device.queue().launch(program, {width, height}, {a, b, y}, {16u});
  device.queue().launch(program, {2, 3, 4}, {a, b, y}, {16u});
  device.queue().launch(program, {width, 1}, {a, b, y}, {16u});
  ASSERT_EQ(driver->log.launches.size(), 3u);
  EXPECT_EQ(driver->log.launches[0].groups, (std::array<uint32_t, 3>{3, 5, 1}));
  EXPECT_EQ(driver->log.launches[0].params, (std::vector<uint32_t>{16}));
  EXPECT_EQ(driver->log.launches[1].groups, (std::array<uint32_t, 3>{2, 3, 4}));
  EXPECT_EQ(driver->log.launches[2].groups, (std::array<uint32_t, 3>{3, 1, 1}));
}

TEST_F(QueueTest, LaunchPassesRangesOfBuffers) {
  const Program program = device.compile(add_kernel());
  const Buffer arena = device.allocate(4099);
  device.queue().launch(program, 1,
                        {{arena, 512, 64}, {arena, 512, 100}, {arena, 3 * kRangeAlignment}}, {16u});
  ASSERT_EQ(driver->log.launches.size(), 1u);
  const auto& seen = driver->log.launches[0].bindings;
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].offset, 512u);
  EXPECT_EQ(seen[0].bytes, 64u);
  EXPECT_EQ(seen[2].offset, 3 * kRangeAlignment);
  EXPECT_EQ(seen[2].bytes, 4100 - 3 * kRangeAlignment) << "to the end, in whole words";

  Queue& queue = device.queue();
  expect_message(
      [&] {
        queue.launch(program, 1, {arena, arena, {arena, 512}}, {1u});
      },
      "one buffer passed as \"a\" and as \"y\"");
  expect_message(
      [&] {
        queue.launch(program, 1, {{arena, 0, 513}, {arena, 2048}, {arena, 512, 64}}, {1u});
      },
      "that do not overlap");
  expect_message(
      [&] {
        queue.launch(program, 1, {arena, arena, {arena, 4}}, {1u});
      },
      "buffer \"y\": a range at byte 4; ranges begin at multiples of");
  expect_message(
      [&] {
        queue.launch(program, 1, {arena, {arena, 4096, 4}, arena}, {1u});
      },
      "buffer \"b\": bytes 4096 to 4100 of a buffer of 4099");
  EXPECT_EQ(driver->log.launches.size(), 1u);
}

TEST_F(QueueTest, SplitsARangeWhereTheRangeBegins) {
  driver->edit().capabilities.max_binding_bytes = 1024;
  const Device splitting(driver, "test");
  splitting.use_capabilities(driver->info().capabilities);
  const Program program = splitting.compile(add_kernel());
  const Buffer arena = splitting.allocate(8192);
  splitting.queue().launch(program, 1, {{arena, 512, 64}, {arena, 1024, 1536}, {arena, 4096, 64}},
                           {16u});
  const auto& seen = driver->log.launches.back().bindings;
  ASSERT_EQ(seen.size(), 4u) << "the second in two pieces";
  EXPECT_EQ(seen[1].offset, 1024u);
  EXPECT_EQ(seen[1].bytes, 1024u);
  EXPECT_EQ(seen[2].offset, 2048u);
  EXPECT_EQ(seen[2].bytes, 512u);
}

TEST_F(QueueTest, LaunchNamesWhatIsWrong) {
  const Program program = device.compile(add_kernel());
  const Buffer a = device.allocate(64), b = device.allocate(64), y = device.allocate(64);
  Queue& queue = device.queue();
  expect_message(
      [&] {
        queue.launch(program, 1, {a, y}, {16u});
      },
      "launch of add: 2 buffers given, the kernel takes 3");
  expect_message(
      [&] {
        queue.launch(program, 1, {a, b, y});
      },
      "0 parameters given, the kernel takes 1");
  expect_message(
      [&] {
        queue.launch(program, 1, {a, b, y}, {1.0f});
      },
      "\"count\") is u32, given f32");
  expect_message(
      [&] {
        queue.launch(program, 1, {a, b, y}, {-1});
      },
      "is u32, given i32 out of its range");
  expect_message(
      [&] {
        queue.launch(program, 1, {a, b, a}, {1u});
      },
      "one buffer passed as \"a\" and as \"y\"");
  expect_message([&] { queue.launch(program, 1, {a, b, Buffer()}, {1u}); }, "empty Buffer");
  const Device other(std::make_shared<FakeDevice>("fake:1"), "");
  expect_message(
      [&] {
        queue.launch(program, 1, {a, b, other.allocate(64)}, {1u});
      },
      "the buffer is on fake:1 and the queue on fake:0");
  expect_message(
      [&] {
        other.queue().launch(program, 1, {a, b, y}, {1u});
      },
      "compiled for fake:0, the queue is on fake:1");
  EXPECT_TRUE(driver->log.launches.empty());
  queue.launch(program, 1, {a, a, y}, {1});  // reading twice is allowed, and so is an int for a u32
  EXPECT_EQ(driver->log.launches.size(), 1u);
}

TEST_F(QueueTest, NoGroupsIsNoLaunch) {
  const Program program = device.compile(add_kernel());
  const Buffer a = device.allocate(64), y = device.allocate(64);
  device.queue().launch(program, 0, {a, a, y}, {1u});
  EXPECT_TRUE(driver->log.launches.empty());
}

TEST_F(QueueTest, LargeGridsFold) {
  auto narrow = std::make_shared<FakeDevice>("fake:0");
  narrow->edit().capabilities.max_groups = {100, 50, 10};
  const Device fresh(narrow, "");
  const auto& log = narrow->log;
  const Program program = fresh.compile(add_kernel());
  const Buffer a = fresh.allocate(64), y = fresh.allocate(64);
  const std::vector<Buffer> buffers = {a, a, y};
  const std::vector<ParamValue> params = {7u};
  fresh.queue().launch(program, {30, 1, 11}, buffers, params);
  ASSERT_EQ(log.launches.size(), 1u);
  EXPECT_TRUE(log.launches[0].folded);
  EXPECT_EQ(log.launches[0].groups, (std::array<uint32_t, 3>{100, 4, 1}));  // 330 groups
  EXPECT_EQ(log.launches[0].params, (std::vector<uint32_t>{7, 30, 1, 11}));
  expect_message(
      [&] {
        fresh.queue().launch(program, {5001, 1, 1}, buffers, params);
      },
      "at most 5000 in all");
  EXPECT_EQ(log.compiles, 2) << "one variant each";
}

TEST_F(QueueTest, LargeBuffersSplit) {
  auto small = std::make_shared<FakeDevice>("fake:0");
  small->edit().capabilities.max_binding_bytes = 1024;
  const Device splitting(small, "");
  const Program program = splitting.compile(add_kernel());
  const Buffer a = splitting.allocate(2500), y = splitting.allocate(1024),
               large = splitting.allocate(9000);
  splitting.queue().launch(program, 1, {a, a, y}, {1u});
  const uint64_t piece = piece_bytes(small->info().capabilities);
  ASSERT_EQ(small->log.launches.size(), 1u);
  const auto& bindings = small->log.launches[0].bindings;
  const size_t pieces = (2500 + piece - 1) / piece;
  ASSERT_EQ(bindings.size(), 2 * pieces + 1);
  EXPECT_EQ(bindings[1].offset, piece);
  EXPECT_EQ(bindings[pieces - 1].bytes, 2500 - (pieces - 1) * piece);
  expect_message(
      [&] {
        splitting.queue().launch(program, 1, {large, a, y}, {1u});
      },
      "bindings of at most 1024 bytes");
}

TEST_F(QueueTest, KernelsAreCompiledOnce) {
  device.compile(add_kernel());
  const Program again = device.compile(add_kernel());
  EXPECT_EQ(driver->log.compiles, 1);
  EXPECT_EQ(again.kernel().name, "add");
}

TEST_F(QueueTest, RecordingKeepsWhatItUses) {
  CommandGraph recording;
  {
    const Program program = device.compile(add_kernel());
    const Buffer a = device.allocate(64), y = device.allocate(64);
    recording = device.queue().record([&] {
      device.queue().launch(program, 1, {a, a, y}, {1u});
      device.queue().copy(a, y, 64);
    });
  }
  EXPECT_EQ(driver->log.used, 128u);
  EXPECT_EQ(driver->log.launches.size(), 1u);
  EXPECT_EQ(driver->log.copies, 1);
  device.queue().replay(recording);
  recording = CommandGraph();
  EXPECT_EQ(driver->log.used, 128u) << "the replay may still run";
  device.queue().wait();
  EXPECT_EQ(driver->log.used, 0u);
}

TEST_F(QueueTest, RecordingRefusesWhatCannotBeReplayed) {
  Queue& queue = device.queue();
  const Buffer a = device.allocate(4);
  std::vector<std::byte> bytes(4);
  expect_message([&] { queue.record([&] { queue.wait(); }); }, "not inside a recording");
  expect_message([&] { queue.record([&] { queue.write(a, bytes); }); }, "not inside a recording");
  expect_message([&] { queue.record([&] { queue.record([] {}); }); }, "already inside a recording");
  EXPECT_EQ(driver->log.recordings, 0) << "the driver never saw them";
  queue.write(a, bytes);  // the queue is usable again
}

TEST_F(QueueTest, BuffersOutliveTheLaunchesThatUseThem) {
  const Program program = device.compile(add_kernel());
  device.queue().launch(program, 1, {device.allocate(64), device.allocate(64), device.allocate(64)},
                        {1u});
  EXPECT_EQ(driver->log.used, 192u);
  device.queue().wait();
  EXPECT_EQ(driver->log.used, 0u);
}

TEST_F(QueueTest, MemoryOfFinishedWorkIsTakenBackWhenMemoryRunsOut) {
  const Program program = device.compile(add_kernel());
  const uint64_t most = driver->info().total_bytes - 128;
  device.queue().launch(program, 1,
                        {device.allocate(64), device.allocate(64), device.allocate(most)}, {1u});
  EXPECT_TRUE(device.allocate(most));
  expect_message([&] { device.allocate(most + 256); }, "out of memory");
}

TEST_F(QueueTest, LateFailureNamesTheKernel) {
  const Program program = device.compile(add_kernel());
  const Buffer a = device.allocate(64), y = device.allocate(64);
  device.queue().launch(program, 1, {a, a, y}, {1u});
  driver->log.fail_at_wait = "the device is lost";
  expect_message([&] { device.queue().wait(); },
                 "the device is lost (on fake:0, last launched: add)");
  device.queue().wait();
}

TEST_F(QueueTest, HandlesShareOneStateAndQueuesOutliveTheirDevice) {
  EXPECT_EQ(device, Device(driver, "again"));
  EXPECT_FALSE(device == Device(std::make_shared<FakeDevice>("fake:0"), ""));
  std::optional<Queue> queue;
  std::weak_ptr<FakeDevice> weak;
  {
    auto other = std::make_shared<FakeDevice>("fake:9");
    weak = other;
    const Device lone(std::move(other), "");
    queue = lone.queue();
  }
  EXPECT_FALSE(weak.expired());
  queue->wait();
  queue.reset();
  EXPECT_TRUE(weak.expired()) << "the default queue must not keep its device alive";
}

TEST_F(QueueTest, WorkNobodyWaitedForKeepsNoDeviceAlive) {
  std::weak_ptr<FakeDevice> weak;
  int waits = 0;
  {
    auto other = std::make_shared<FakeDevice>("fake:9");
    weak = other;
    const Device lone(other, "");
    const Program program = lone.compile(add_kernel());
    const Buffer a = lone.upload(std::vector<float>(16)), y = lone.allocate(64);
    lone.queue().launch(program, 1, {a, a, y}, {1u});
    const CommandGraph recording = lone.queue().record([&] {
      lone.queue().launch(program, 1, {a, a, y}, {1u});
    });
    lone.queue().replay(recording);
    waits = other->log.waits;
    EXPECT_EQ(waits, 0);
    other->log.at_end = [&waits](const test::FakeLog& log) {
      waits = log.used == 0 ? log.waits : -1;
    };
  }
  EXPECT_TRUE(weak.expired()) << "the default queue's work keeps its device alive";
  EXPECT_EQ(waits, 1) << "the queue waits for its work before its memory goes, and all of it goes";
}

TEST_F(QueueTest, ThreadsTakeTurns) {
  const Program program = device.compile(add_kernel());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const Buffer a = device.allocate(64), y = device.allocate(64);
        device.queue().launch(program, 1, {a, a, y}, {1u});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(driver->log.launches.size(), 400u);
}

TEST_F(QueueTest, KernelsCompiledTogetherAreCompiledOnceAndInOrder) {
  Kernel other = add_kernel();
  other.name = "other";
  const Program known = device.compile(add_kernel());
  const std::vector<Kernel> kernels = {other, add_kernel()};
  for (int i = 0; i < 2; ++i) {
    const std::vector<Program> programs = device.compile_together(kernels);
    ASSERT_EQ(programs.size(), 2u);
    EXPECT_EQ(programs[0].kernel().name, "other");
    EXPECT_EQ(&programs[1].kernel(), &known.kernel()) << "what is known is not compiled again";
    EXPECT_EQ(driver->log.compiles, 2);
  }
  EXPECT_TRUE(device.compile_together({}).empty());
}

TEST_F(QueueTest, EmptyHandlesAreErrors) {
  expect_message([] { Device().allocate(4); }, "Device handle is empty");
  expect_message([] { (void)Program().kernel(); }, "Program handle is empty");
}

}  // namespace
}  // namespace prism
