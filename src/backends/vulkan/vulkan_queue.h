// An in-order queue over Vulkan: launches batched into submissions, copies through staging,
// recordings, events.
#pragma once

#include <memory>

#include "backends/vulkan/vulkan_device.h"

namespace prism::vulkan {

std::unique_ptr<QueueDriver> make_queue(LogicalDevice& device);

}  // namespace prism::vulkan
