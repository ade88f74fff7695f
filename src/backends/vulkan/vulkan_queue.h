// An in-order Vulkan queue with batched launches, staged copies, recordings and events.
#pragma once

#include <memory>

#include "backends/vulkan/vulkan_device.h"

namespace prism::vulkan {

std::unique_ptr<QueueDriver> make_queue(LogicalDevice& device);

}  // namespace prism::vulkan
