// Decides where a barrier is needed: only before work that touches what unfinished work wrote, or
// writes what it reads.
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
  // Called before work of that stage (compute or transfer) is recorded. True: a barrier from
  // barrier_from() to barrier_to() must come first, and is taken as recorded.
  bool needs_barrier(std::span<const Range> ranges, VkPipelineStageFlags stage);

  VkPipelineStageFlags barrier_from() const { return barrier_from_; }
  VkPipelineStageFlags barrier_to() const { return barrier_to_; }

  // Everything so far is ordered before everything to come, in every stage.
  void clear();

 private:
  std::vector<Range> pending_;               // touched since the last barrier
  VkPipelineStageFlags pending_stages_ = 0;  // which did so
  VkPipelineStageFlags past_stages_ = 0;     // worked before the last barrier
  VkPipelineStageFlags covered_ =
      ~0u;  // stages that the last barrier holds up for the work before it
  VkPipelineStageFlags barrier_from_ = 0, barrier_to_ = 0;
};

}  // namespace prism::vulkan
