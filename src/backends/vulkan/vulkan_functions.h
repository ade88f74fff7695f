// The Vulkan functions in use, loaded at run time: one table per instance and one per device.
#pragma once

#include <string>

#include "backends/vulkan/vulkan_header.h"

namespace prism::vulkan {

// clang-format off
#define PRISM_VULKAN_INSTANCE_FUNCTIONS(X) \
  X(DestroyInstance) X(EnumeratePhysicalDevices) X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) \
  X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties2) X(GetPhysicalDeviceQueueFamilyProperties) \
  X(EnumerateDeviceExtensionProperties) X(CreateDevice) X(GetDeviceProcAddr)
// Null if the extension is absent.
#define PRISM_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(X) \
  X(CreateDebugUtilsMessengerEXT) X(DestroyDebugUtilsMessengerEXT) X(GetPhysicalDeviceCooperativeMatrixPropertiesKHR)

#define PRISM_VULKAN_DEVICE_FUNCTIONS(X) \
  X(DestroyDevice) X(GetDeviceQueue) X(DeviceWaitIdle) X(QueueSubmit) \
  X(AllocateMemory) X(FreeMemory) X(MapMemory) X(UnmapMemory) \
  X(CreateBuffer) X(DestroyBuffer) X(GetBufferMemoryRequirements) X(BindBufferMemory) \
  X(CreateFence) X(DestroyFence) X(ResetFences) X(GetFenceStatus) X(WaitForFences) \
  X(CreateQueryPool) X(DestroyQueryPool) X(GetQueryPoolResults) \
  X(CreateShaderModule) X(DestroyShaderModule) X(CreatePipelineCache) X(DestroyPipelineCache) \
  X(GetPipelineCacheData) X(CreateComputePipelines) X(DestroyPipeline) \
  X(CreatePipelineLayout) X(DestroyPipelineLayout) X(CreateDescriptorSetLayout) X(DestroyDescriptorSetLayout) \
  X(CreateDescriptorPool) X(DestroyDescriptorPool) X(ResetDescriptorPool) X(AllocateDescriptorSets) \
  X(UpdateDescriptorSets) \
  X(CreateCommandPool) X(DestroyCommandPool) X(AllocateCommandBuffers) X(FreeCommandBuffers) \
  X(BeginCommandBuffer) X(EndCommandBuffer) X(ResetCommandBuffer) \
  X(CmdBindPipeline) X(CmdBindDescriptorSets) X(CmdPushConstants) X(CmdDispatch) X(CmdCopyBuffer) \
  X(CmdPipelineBarrier) X(CmdResetQueryPool) X(CmdWriteTimestamp)
#define PRISM_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(X) X(CmdPushDescriptorSetKHR)
// clang-format on

#define PRISM_VULKAN_MEMBER(name) PFN_vk##name name = nullptr;

struct InstanceFunctions {
  PRISM_VULKAN_INSTANCE_FUNCTIONS(PRISM_VULKAN_MEMBER)
  PRISM_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(PRISM_VULKAN_MEMBER)
  // Throws kDriver with the name of a function that the loader lacks.
  void load(PFN_vkGetInstanceProcAddr find, VkInstance instance);
};

struct DeviceFunctions {
  PRISM_VULKAN_DEVICE_FUNCTIONS(PRISM_VULKAN_MEMBER)
  PRISM_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(PRISM_VULKAN_MEMBER)
  void load(PFN_vkGetDeviceProcAddr find, VkDevice device);
};

std::string result_name(VkResult result);  // "VK_ERROR_DEVICE_LOST"

// Throws kDeviceLost, kOutOfMemory or kDriver, "vulkan:0: creating a fence: VK_ERROR_...".
void check(VkResult result, const std::string& device, const std::string& doing);

}  // namespace prism::vulkan
