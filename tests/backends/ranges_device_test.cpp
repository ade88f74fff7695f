// Launches over ranges of buffers, immediate and recorded, on every device found.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>

#include "prism/device.h"
#include "prism/kernel.h"
#include "runtime/driver.h"
#include "support/seed.h"

namespace prism {
namespace {

constexpr uint32_t kPoison = 0xCDCDCDCD;

std::vector<std::shared_ptr<DeviceDriver>> all_devices() {
  std::vector<std::shared_ptr<DeviceDriver>> devices;
  for (const BackendReport& report : discover_backends())
    devices.insert(devices.end(), report.devices.begin(), report.devices.end());
  return devices;
}

// y = x * 3 + z on integers, so that every device gives the same bits.
ir::Kernel blend() {
  using namespace dsl;
  return kernel("blend", 64, [] {
    auto x = in("x", u32), z = in("z", u32);
    auto y = out("y", u32);
    auto count = param("count", u32);
    Value i = global_id();
    if_(i < count, [&] { y[i] = x[i] * 3u + z[i]; });
  });
}

// Three chained launches inside one arena: parts 1 and 0 give part 2, and so on.
struct Arena {
  static constexpr uint32_t kParts = 5;
  uint32_t count = 0;          // elements per part
  uint64_t part_bytes = 0;     // a multiple of the alignment
  std::vector<uint32_t> host;  // the expected final content

  Arena(uint32_t elements, uint32_t seed) : count(elements) {
    part_bytes = (elements * 4ull + kRangeAlignment) / kRangeAlignment * kRangeAlignment;
    host.assign(kParts * words(), kPoison);
    std::mt19937 random(seed);
    for (uint32_t i = 0; i < 2 * words(); ++i) host[i] = random();
  }
  size_t words() const { return part_bytes / 4; }
  BufferRange part(const Buffer& arena, uint32_t index) const {
    return {arena, index * part_bytes, std::max<uint64_t>(count * 4ull, 4)};
  }
  void launch(const Device& device, const Program& program, const Buffer& arena) const {
    for (uint32_t i = 0; i + 2 < kParts; ++i)
      device.queue().launch(program, (count + 63) / 64,
                            {part(arena, i + 1), part(arena, i), part(arena, i + 2)}, {count});
  }
  std::vector<uint32_t> expected() const {
    std::vector<uint32_t> result = host;
    for (uint32_t p = 2; p < kParts; ++p)
      for (uint32_t i = 0; i < count; ++i)
        result[p * words() + i] = result[(p - 1) * words() + i] * 3 + result[(p - 2) * words() + i];
    return result;
  }
};

class Ranges : public ::testing::TestWithParam<std::shared_ptr<DeviceDriver>> {};

TEST_P(Ranges, AreWhereTheyWereAsked) {
  const Device device(GetParam(), "");
  const Program program = device.compile(blend());
  const uint32_t seed = test_seed();
  std::cout << device.id() << ", seed " << seed << "\n";
  for (const uint32_t count : {0u, 1u, 127u, 128u, 1009u}) {
    const Arena arena(count, seed + count);
    const Buffer memory = device.upload(arena.host);
    arena.launch(device, program, memory);
    EXPECT_EQ(device.download<uint32_t>(memory), arena.expected()) << count << " elements";
  }
}

TEST_P(Ranges, AreKeptByARecording) {
  const Device device(GetParam(), "");
  const Program program = device.compile(blend());
  const uint32_t seed = test_seed();
  std::cout << device.id() << ", seed " << seed << "\n";
  const Arena arena(1009, seed);
  const Buffer memory = device.upload(arena.host), other = device.upload(arena.host);
  Queue& queue = device.queue();
  const CommandGraph recording = queue.record([&] {
    arena.launch(device, program, memory);
    queue.copy(other, memory, arena.part_bytes, 4 * arena.part_bytes, 3 * arena.part_bytes);
  });
  EXPECT_EQ(device.download<uint32_t>(memory), arena.host) << "recording runs nothing";
  queue.replay(recording);
  queue.replay(recording);
  const std::vector<uint32_t> expected = arena.expected();
  EXPECT_EQ(device.download<uint32_t>(memory), expected);
  std::vector<uint32_t> copied = arena.host;
  std::copy_n(expected.begin() + static_cast<ptrdiff_t>(3 * arena.words()), arena.words(),
              copied.begin() + static_cast<ptrdiff_t>(4 * arena.words()));
  EXPECT_EQ(device.download<uint32_t>(other), copied);
}

INSTANTIATE_TEST_SUITE_P(Devices, Ranges, ::testing::ValuesIn(all_devices()), [](const auto& test) {
  std::string name = test.param->info().id;
  std::ranges::replace(name, ':', '_');
  return name;
});

}  // namespace
}  // namespace prism
