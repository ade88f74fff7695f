// What a driver may do two ways and does not say: found by running a kernel once.
#pragma once

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_memory.h"

namespace prism::vulkan {

// Does the device round a fused multiply and add once? Kept on disk for the driver.
bool fuses_multiply_add(LogicalDevice& device, Allocator& allocator);

}  // namespace prism::vulkan
