// Decides where a barrier is needed: only before work that conflicts with unfinished work (read
// after write, write after read or write).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/vulkan/vulkan_header.h"

namespace prism::vulkan {

struct Range {
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t begin = 0, end = 0;
  bool write = false;
};

class HazardTracker {
 public:
  // Called before work of that stage (compute or transfer) is recorded. If it returns true, the
  // caller must record a barrier from barrier_from() to barrier_to() first; the tracker assumes it
  // does.
  bool needs_barrier(std::span<const Range> ranges, VkPipelineStageFlags stage);

  VkPipelineStageFlags barrier_from() const { return barrier_from_; }
  VkPipelineStageFlags barrier_to() const { return barrier_to_; }

  // Call after a full barrier: all earlier work is ordered before all later work.
  void clear();

 private:
  std::vector<Range> pending_;               // accessed since the last barrier
  VkPipelineStageFlags pending_stages_ = 0;  // stages of those accesses
  VkPipelineStageFlags past_stages_ = 0;     // stages active before the last barrier
  VkPipelineStageFlags covered_ = ~0u;       // stages that the last barrier blocks
  VkPipelineStageFlags barrier_from_ = 0, barrier_to_ = 0;
};

}  // namespace prism::vulkan
