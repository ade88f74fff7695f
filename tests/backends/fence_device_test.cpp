// device_fence on every device that has it: the last group of a launch sees the writes of all
// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <random>
#include <vector>

#include "lower/lower.h"
#include "prism/error.h"
#include "prism/kernel.h"
#include "support/devices/devices.h"
#include "support/seed.h"

namespace prism {
namespace {

using namespace dsl;

constexpr uint32_t kLanes = 64, kPerLane = 4;

// Every group writes partial sums of its piece, one per lane. The group that finishes last adds up
// the partial sums of all groups and resets the counter.
ir::Kernel sum_at_once() {
  return kernel("sum_at_once", kLanes, [] {
    const In x = in("x", u32);
    const Array parts = inout("parts", u32), counter = inout("counter", u32), y = out("y", u32);
    Value sum = constant(u32, 0);
    for (uint32_t i = 0; i < kPerLane; ++i) sum = sum + x[global_id() * kPerLane + i];
    parts[global_id()] = sum;
    device_fence();
    barrier();
    Var arrived(u32, 0u, "arrived");
    if_(local_id() == 0u, [&] { arrived = counter.atomic_add(0u, 1u) + 1u; });
    if_(group_max(arrived) == group_count(), [&] {
      device_fence();
      Var all(u32, 0u, "all");
      for_(local_id(), group_count() * kLanes, kLanes, [&](Value i) { all += parts.load(i); });
      const Value total = group_sum(all);
      if_(local_id() == 0u, [&] {
        y[0u] = total;
        counter.atomic(AtomicOp::exchange, 0u, 0u);
      });
    });
  });
}

TEST(DeviceFence, TheLastGroupSeesWhatAllWrote) {
  const uint32_t seed = test_seed(), groups = 97;
  std::cout << "seed " << seed << "\n";
  std::mt19937 random(seed);
  size_t tried = 0;
  for (const Device& device : test::every_device()) {
    if (!device.info().capabilities.device_fence) continue;
    ++tried;
    const Program program = device.compile(sum_at_once());
    const Buffer parts = device.upload(std::vector<uint32_t>(groups * kLanes, 0xffffffffu)),
                 counter = device.upload(std::vector<uint32_t>{0}),
                 x = device.allocate(groups * kLanes * kPerLane * 4), y = device.allocate(4);
    for (int run = 0; run < 30; ++run) {
      std::vector<uint32_t> values(groups * kLanes * kPerLane);
      for (uint32_t& value : values) value = static_cast<uint32_t>(random());
      uint32_t wanted = 0;
      for (const uint32_t value : values) wanted += value;
      device.queue().write(x, std::as_bytes(std::span(values)));
      device.queue().launch(program, groups, {x, parts, counter, y}, {});
      ASSERT_EQ(device.download<uint32_t>(y)[0], wanted) << device.id() << ", run " << run;
    }
    EXPECT_EQ(device.download<uint32_t>(counter)[0], 0u) << device.id();
  }
  EXPECT_GT(tried, 0u);
}

TEST(DeviceFence, ADeviceWithoutItSaysSo) {
  ir::Capabilities without;
  without.dialect = "wgsl";
  try {
    lower(sum_at_once(), without);
    FAIL() << "a device without fences took the kernel";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    EXPECT_NE(std::string(error.what()).find("device_fence"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace prism
