// Vulkan devices: any GPU with a Vulkan 1.1 driver, and the software ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/driver.h"

namespace prism {

// For tests: paths a driver would otherwise choose by itself.
struct VulkanOptions {
  bool push_descriptors =
      true;  // false: descriptor sets from pools, as on devices without the extension
  bool in_place =
      true;  // false: unified memory is reached through staging, as on a card of its own
  bool copies_by_kernel =
      false;  // true: large copies inside the device by a kernel on every device
  std::vector<std::string> libraries;  // instead of the usual names of the loader
};

std::unique_ptr<Backend> make_vulkan_backend();
std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions& options);

}  // namespace prism
