// The Vulkan backend: any GPU with a Vulkan 1.1 driver, and software devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// For tests: force code paths that the device would otherwise decide.
struct VulkanOptions {
  bool push_descriptors = true;   // false: descriptor pools, as on devices without the extension
  bool in_place = true;           // false: stage copies to unified memory, as on discrete cards
  bool copies_by_kernel = false;  // true: use the copy kernel for large copies on every device
  std::vector<std::string> libraries;  // instead of the loader's usual names
};

std::unique_ptr<Backend> make_vulkan_backend();
std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions& options);

}  // namespace prism
