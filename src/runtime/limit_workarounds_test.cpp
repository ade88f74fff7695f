// Workarounds for interfaces that copy only words or bind a buffer in one way.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <random>

#include "ir/bindings.h"
#include "ir/interpreter/interpreter.h"
#include "prism/device.h"
#include "prism/kernel.h"
#include "support/devices/fake_device.h"
#include "support/seed.h"

namespace prism {
namespace {

using test::FakeDevice;
using test::FakeMemory;

// A device that copies whole words only and cannot bind a buffer for reading and writing at once;
// its kernels are interpreted.
struct AroundLimits : ::testing::Test {
  AroundLimits() {
    driver->log.on_launch = [this](const LaunchCall& call) {
      const std::vector<bool> written = ir::written_bindings(*call.kernel);
      std::vector<ir::HostBuffer> buffers;
      for (size_t i = 0; i < call.bindings.size(); ++i) {
        const Binding& one = call.bindings[i];
        buffers.push_back(
            {static_cast<FakeMemory&>(*one.memory).content.data() + one.offset, one.bytes});
        for (size_t j = 0; j < i; ++j)
          mixed += call.bindings[j].memory == one.memory && written[i] != written[j];
      }
      ir::interpret(*call.kernel, call.groups, buffers, call.params);
    };
  }
  static std::shared_ptr<FakeDevice> limited() {
    auto driver = std::make_shared<FakeDevice>("fake:0");
    driver->edit().copies_words = driver->edit().one_access = true;
    return driver;
  }
  std::shared_ptr<FakeDevice> driver = limited();
  Device device{driver, "test"};
  int mixed = 0;  // buffers bound for both reading and writing
};

std::vector<std::byte> random_bytes(std::mt19937_64& engine, size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(engine());
  return bytes;
}

TEST_F(AroundLimits, BytesMoveFromAnyPlaceToAnyByWholeWords) {
  const uint64_t seed = test_seed();
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 engine(seed);
  constexpr size_t kBytes = 1501;  // more than one launch can copy
  std::vector<std::byte> model[2];
  Buffer buffers[2];
  Queue& queue = device.queue();
  for (int i = 0; i < 2; ++i) {
    model[i] = random_bytes(engine, kBytes);
    buffers[i] = device.allocate(kBytes);
    queue.write(buffers[i], model[i]);
  }
  for (int round = 0; round < 200; ++round) {
    const size_t bytes = engine() % (round % 4 == 0 ? 8 : 700), a = engine() % 2, b = engine() % 2;
    const size_t to = engine() % (kBytes - bytes), from = engine() % (kBytes - bytes);
    if (round % 3 == 0) {
      const auto fresh = random_bytes(engine, bytes);
      queue.write(buffers[a], fresh, to);
      std::ranges::copy(fresh, model[a].begin() + static_cast<long>(to));
    } else if (a != b || to + bytes <= from || from + bytes <= to) {
      queue.copy(buffers[a], buffers[b], bytes, to, from);
      std::memmove(model[a].data() + to, model[b].data() + from, bytes);
    }
    std::vector<std::byte> got(bytes, std::byte{0xee});
    queue.read(buffers[a], got, to);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), model[a].begin() + static_cast<long>(to)))
        << "round " << round << ", " << bytes << " bytes at " << to;
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(device.download<std::byte>(buffers[i]), model[i]) << i;
  EXPECT_EQ(driver->log.odd, 0);
  EXPECT_EQ(mixed, 0);
}

// The last bytes of a buffer need no kernel: the padding after them may be overwritten.
TEST_F(AroundLimits, AWholeOddBufferIsWrittenWithoutAKernel) {
  const std::vector<uint8_t> sent = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(device.download<uint8_t>(device.upload(sent)), sent);
  EXPECT_EQ(driver->log.compiles, 0);
  EXPECT_EQ(driver->log.odd, 0);
}

TEST_F(AroundLimits, RangesOfOneBufferAreBoundInOneWay) {
  using namespace dsl;
  const Program sum = device.compile(kernel("sum", 64, [] {
    auto a = in("a", u32), b = in("b", u32);
    auto y = out("y", u32);
    auto i = global_id();
    y[i] = a[i] + b[i] * 3u;
  }));
  std::vector<uint32_t> model(3 * 128);
  std::iota(model.begin(), model.end(), 5u);
  const Buffer arena = device.upload(model);
  const auto range = [&](uint32_t i) { return BufferRange{arena, i * kRangeAlignment, 512}; };
  Queue& queue = device.queue();
  queue.launch(sum, 2, {range(0), range(1), range(2)});
  queue.launch(sum, 2, {range(2), range(2), range(0)});  // one of the two inputs is bound as a copy
  queue.launch(sum, 2, {range(0), range(0), device.allocate(512)});
  for (uint32_t i = 0; i < 128; ++i) {
    model[256 + i] = model[i] + model[128 + i] * 3;
    model[i] = model[256 + i] * 4;
  }
  EXPECT_EQ(device.download<uint32_t>(arena), model);
  EXPECT_EQ(mixed, 0);
  EXPECT_EQ(driver->log.copies, 1);
  EXPECT_EQ(driver->log.compiles, 3) << "plain, both read ranges writable, one of them";
}

}  // namespace
}  // namespace prism
