// The facts of one physical device, queried before it is used.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/vulkan/vulkan_backend.h"
#include "backends/vulkan/vulkan_instance.h"
#include "runtime/driver.h"

namespace prism::vulkan {

// The relevant features, chained for both vkGetPhysicalDeviceFeatures2 and vkCreateDevice. A
// structure is chained only if the device supports it; the others stay all false.
struct Features {
  VkPhysicalDeviceFeatures2 core{};
  VkPhysicalDevice16BitStorageFeatures storage_16{};
  VkPhysicalDevice8BitStorageFeatures storage_8{};
  VkPhysicalDeviceShaderFloat16Int8Features narrow{};
  VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures subgroup_types{};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{};
  VkPhysicalDeviceShaderAtomicFloatFeaturesEXT float_atomics{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot_product{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{};
};

struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties{};
  std::set<std::string> extensions;
  Features features;  // supported features, reduced to those in use
  std::vector<const char*> enabled_extensions;
  DeviceInfo info;

  bool push_descriptors = false;
  bool memory_budget = false;
  bool mapped = false;              // the host accesses buffers in place
  bool has_subgroup_range = false;  // the size varies, so pipelines must request one
  bool full_subgroups = false;
  bool copies_by_kernel = false;  // a kernel copies faster than vkCmdCopyBuffer
  uint64_t max_allocation_bytes = 0;
  uint64_t max_buffer_bytes = 0;
  uint32_t queue_family = 0;
  uint32_t queue_count = 1;
  uint32_t timestamp_bits = 0;
  uint32_t device_memory_type = 0;  // for buffers
  uint32_t device_heap = 0;
  uint32_t staging_memory_type = 0;  // host memory for staging

  bool at_least(uint32_t version) const { return properties.apiVersion >= version; }
  bool has(const char* extension) const { return extensions.contains(extension); }
};

// Throws kNotSupported with the reason if the device is too old or has no compute queue.
std::unique_ptr<PhysicalDevice> examine(const Instance& instance, VkPhysicalDevice handle,
                                        uint32_t index, const VulkanOptions& options);

// Fills info.capabilities from features and properties (vulkan_capabilities.cpp).
void find_capabilities(const Instance& instance, PhysicalDevice& device);

// Adds a structure to the front of a chain.
template <class Head, class Part>
void chain(Head& head, Part& part, VkStructureType type) {
  part.sType = type;
  part.pNext = head.pNext;
  head.pNext = &part;
}

}  // namespace prism::vulkan
