// The Metal backend over a double of the Objective-C runtime and of Metal: discovery, memory,
// recordings, failures, every kernel, a sample of the ops and a language model.
#include <gtest/gtest.h>

#include "runtime/device.h"
#include "runtime/self_check.h"
#include "support/double_cases.h"
#include "support/metal_double.h"

namespace prism {
namespace {

using test::add_one_kernel;
using test::contains;
using test::counting;
using test::error_of;
using test::MetalDouble;
using test::scale_kernel;

class MetalDoubleTest : public testing::Test {
 protected:
  // Every object must be given back by then; a double cannot hide a leak or a write beside a
  // buffer.
  void TearDown() override {
    double_.expect_clean();
    EXPECT_EQ(double_.count("live_objects"), 0);
  }
  MetalDouble double_;
};

// --- discovery

TEST_F(MetalDoubleTest, DescribesAnAppleGpu) {
  double_.set("memory=2147483648");
  const Discovery found = double_.discover();
  ASSERT_EQ(found.devices.size(), 1u) << found.reason;
  EXPECT_EQ(found.reason, "");
  const DeviceInfo& info = found.devices[0]->info();
  EXPECT_EQ(info.id, "metal:0");
  EXPECT_EQ(info.name, "Apple double");
  EXPECT_EQ(info.vendor, "Apple");
  EXPECT_EQ(info.driver, "Metal (Apple 8), macOS Version 15.1 (Build of the double)");
  EXPECT_EQ(info.total_bytes, 2147483648u);
  EXPECT_TRUE(info.unified);
  const ir::Capabilities& can = info.capabilities;
  EXPECT_EQ(can.dialect, "metal");
  EXPECT_EQ(can.subgroup_size, 32u);
  EXPECT_TRUE(can.math_f16);
  EXPECT_FALSE(can.math_f64);
  EXPECT_EQ(can.max_group_size, 1024u);
  EXPECT_EQ(can.shared_bytes, 32u << 10);
  EXPECT_EQ(can.max_buffers, 30u);
  EXPECT_EQ(can.max_binding_bytes, 2147483648u);
}

TEST_F(MetalDoubleTest, DiscreteGpuOfAnIntelMacHasMemoryOfItsOwn) {
  double_.set("family=2002,unified=0,macos=12");
  const Device device = double_.device();
  EXPECT_EQ(device.info().name, "AMD double");
  EXPECT_EQ(device.info().vendor, "AMD");
  EXPECT_FALSE(device.info().unified);
  EXPECT_EQ(device.info().capabilities.subgroup_size, 0u);
  std::vector<float> x = counting(5 << 20);  // more than is copied through at once
  const Buffer buffer = device.upload(x);
  device.queue().launch(device.compile(add_one_kernel()), (5 << 20) / 64, {buffer},
                        {uint32_t{5 << 20}});
  for (float& value : x) value += 1;
  EXPECT_EQ(device.download<float>(buffer), x);
}

// --- work

TEST_F(MetalDoubleTest, RunsAKernelAndItsRecording) {
  const Device device = double_.device();
  const std::vector<float> x = counting(1000);
  const Buffer from = device.upload(x), to = device.allocate(x.size() * 4);
  Queue& queue = device.queue();
  const Program scale = device.compile(scale_kernel()), add = device.compile(add_one_kernel());
  const Recording recording = queue.record([&] {
    queue.launch(scale, 16, {from, to}, {1000u, 2.0f});
    queue.launch(add, 16, {to}, {1000u});
  });
  EXPECT_EQ(double_.count("launches"), 0);
  queue.replay(recording);
  queue.replay(recording);
  const auto y = device.download<float>(to);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], 2 * x[i] + 1) << i;
  EXPECT_EQ(double_.count("launches"), 4);
}

}  // namespace
}  // namespace prism
