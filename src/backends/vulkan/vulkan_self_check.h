// Detects unspecified driver behaviour by running a kernel once.
#pragma once

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_memory.h"

namespace prism::vulkan {

// Whether the device rounds a fused multiply-add once. Cached on disk per driver.
bool fuses_multiply_add(LogicalDevice& device, Allocator& allocator);

}  // namespace prism::vulkan
