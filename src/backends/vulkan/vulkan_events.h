// Points in a queue, timed by the device's clock if it has one.
#pragma once

#include <memory>
#include <vector>

#include "backends/vulkan/vulkan_submissions.h"

namespace prism::vulkan {

// Timestamp queries, in pools that grow with the number of live events.
class Timestamps {
 public:
  explicit Timestamps(LogicalDevice& device) : device_(device) {}

  struct Query {
    VkQueryPool pool = VK_NULL_HANDLE;
    uint32_t index = 0;
  };
  Query take();
  void give_back(Query query) { free_.push_back(query); }
  uint64_t read(Query query);  // in ticks; the query must have completed

 private:
  LogicalDevice& device_;
  std::vector<Handle<VkQueryPool>> pools_;
  std::vector<Query> free_;
};

// Records an event and submits it. Events keep the queue state they need alive.
std::unique_ptr<EventDriver> record_event(const std::shared_ptr<Submissions>& submissions,
                                          const std::shared_ptr<Timestamps>& timestamps);

}  // namespace prism::vulkan
