// Finds overlaps between buffer ranges.
#include "backends/vulkan/vulkan_hazards.h"

#include <algorithm>

namespace prism::vulkan {
namespace {

// With more ranges, a barrier is cheaper than searching for a conflict.
constexpr size_t kMostPending = 128;

bool conflicts(const Range& a, const Range& b) {
  return (a.write || b.write) && a.buffer == b.buffer && a.begin < b.end && b.begin < a.end;
}

}  // namespace

bool HazardTracker::needs_barrier(std::span<const Range> ranges, VkPipelineStageFlags stage) {
  const bool uncovered = (covered_ & stage) == 0;
  const bool conflict = std::ranges::any_of(ranges, [&](const Range& range) {
    return std::ranges::any_of(pending_,
                               [&](const Range& other) { return conflicts(range, other); });
  });
  const bool barrier = uncovered || conflict || pending_.size() + ranges.size() > kMostPending;
  if (barrier) {
    past_stages_ |= pending_stages_;
    barrier_from_ = past_stages_;
    // If a narrow barrier did not cover this stage, the new one covers both stages.
    barrier_to_ =
        uncovered ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT : stage;
    covered_ = barrier_to_;
    pending_.clear();
    pending_stages_ = 0;
  }
  pending_.insert(pending_.end(), ranges.begin(), ranges.end());
  pending_stages_ |= stage;
  return barrier;
}

void HazardTracker::clear() { *this = HazardTracker(); }

}  // namespace prism::vulkan
