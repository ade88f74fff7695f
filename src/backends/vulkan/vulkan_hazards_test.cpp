// Barriers are placed only between dependent work.
#include "backends/vulkan/vulkan_hazards.h"

#include <gtest/gtest.h>

namespace prism::vulkan {
namespace {

constexpr VkPipelineStageFlags kCompute = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
constexpr VkPipelineStageFlags kTransfer = VK_PIPELINE_STAGE_TRANSFER_BIT;

VkBuffer buffer(uintptr_t number) { return reinterpret_cast<VkBuffer>(number); }
Range reads(uintptr_t number, uint64_t begin = 0, uint64_t end = 64) {
  return {buffer(number), begin, end, false};
}
Range writes(uintptr_t number, uint64_t begin = 0, uint64_t end = 64) {
  return {buffer(number), begin, end, true};
}

bool needs(HazardTracker& tracker, std::vector<Range> ranges,
           VkPipelineStageFlags stage = kCompute) {
  return tracker.needs_barrier(ranges, stage);
}

TEST(VulkanHazards, OnlyConflictsNeedABarrier) {
  HazardTracker tracker;
  EXPECT_FALSE(needs(tracker, {reads(1), writes(2)}));
  EXPECT_FALSE(needs(tracker, {reads(1), writes(3)})) << "two readers of one buffer";
  EXPECT_TRUE(needs(tracker, {reads(2), writes(4)})) << "read after write";
  EXPECT_FALSE(needs(tracker, {reads(2), reads(3), writes(5)}))
      << "ordered by that barrier already";
  EXPECT_TRUE(needs(tracker, {writes(2)})) << "write after read";
  EXPECT_TRUE(needs(tracker, {writes(2)})) << "write after write";
}

TEST(VulkanHazards, PartsOfABufferAreApart) {
  HazardTracker tracker;
  EXPECT_FALSE(needs(tracker, {writes(1, 0, 64)}));
  EXPECT_FALSE(needs(tracker, {writes(1, 64, 128)}));
  EXPECT_TRUE(needs(tracker, {reads(1, 63, 65)}));
}

TEST(VulkanHazards, AStageThatNoBarrierHeldUpGetsItsOwn) {
  HazardTracker tracker;
  EXPECT_FALSE(needs(tracker, {writes(1)}));
  EXPECT_TRUE(needs(tracker, {reads(1), writes(2)}));
  EXPECT_EQ(tracker.barrier_from(), kCompute);
  EXPECT_EQ(tracker.barrier_to(), kCompute);
  // The barrier made buffer 1 visible to compute, not to the copy.
  EXPECT_TRUE(needs(tracker, {reads(1), writes(3)}, kTransfer));
  EXPECT_EQ(tracker.barrier_from(), kCompute);
  EXPECT_EQ(tracker.barrier_to(), kCompute | kTransfer);
  EXPECT_TRUE(needs(tracker, {reads(3)}));
  EXPECT_EQ(tracker.barrier_from(), kCompute | kTransfer);
}

TEST(VulkanHazards, LongListsEndInABarrier) {
  HazardTracker tracker;
  bool any = false;
  for (uintptr_t i = 1; i < 1000; ++i) any |= needs(tracker, {writes(i)});
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace prism::vulkan
