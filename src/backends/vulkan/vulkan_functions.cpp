// Loads Vulkan's functions and translates its results to errors.
#include "backends/vulkan/vulkan_functions.h"

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::vulkan {
namespace {

[[noreturn]] void missing(const char* name) {
  throw Error(ErrorCode::kDriver,
              fmt::format("the Vulkan library has no {}; update the driver", name));
}

}  // namespace

#define PRISM_VULKAN_LOAD(name) name = reinterpret_cast<PFN_vk##name>(find(from, "vk" #name));
#define PRISM_VULKAN_LOAD_REQUIRED(name) \
  PRISM_VULKAN_LOAD(name)                \
  if (!name) missing("vk" #name);

void InstanceFunctions::load(PFN_vkGetInstanceProcAddr find, VkInstance from) {
  PRISM_VULKAN_INSTANCE_FUNCTIONS(PRISM_VULKAN_LOAD_REQUIRED)
  PRISM_VULKAN_OPTIONAL_INSTANCE_FUNCTIONS(PRISM_VULKAN_LOAD)
}

void DeviceFunctions::load(PFN_vkGetDeviceProcAddr find, VkDevice from){
    PRISM_VULKAN_DEVICE_FUNCTIONS(PRISM_VULKAN_LOAD_REQUIRED)
        PRISM_VULKAN_OPTIONAL_DEVICE_FUNCTIONS(PRISM_VULKAN_LOAD)}

std::string result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS:
      return "VK_SUCCESS";
    case VK_NOT_READY:
      return "VK_NOT_READY";
    case VK_TIMEOUT:
      return "VK_TIMEOUT";
    case VK_INCOMPLETE:
      return "VK_INCOMPLETE";
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED:
      return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST:
      return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED:
      return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT:
      return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT:
      return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER:
      return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS:
      return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_OUT_OF_POOL_MEMORY:
      return "VK_ERROR_OUT_OF_POOL_MEMORY";
    case VK_ERROR_UNKNOWN:
      return "VK_ERROR_UNKNOWN";
    default:
      return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

void check(VkResult result, const std::string& device, const std::string& doing) {
  if (result == VK_SUCCESS) return;
  const bool memory = result == VK_ERROR_OUT_OF_HOST_MEMORY ||
                      result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
                      result == VK_ERROR_TOO_MANY_OBJECTS;
  const ErrorCode code = result == VK_ERROR_DEVICE_LOST ? ErrorCode::kDeviceLost
                         : memory                       ? ErrorCode::kOutOfMemory
                                                        : ErrorCode::kDriver;
  std::string message = fmt::format("{}: {}: {}", device, doing, result_name(result));
  if (result == VK_ERROR_DEVICE_LOST)
    message += "; the device stopped answering: a kernel that never ends, or a driver fault";
  throw Error(code, message);
}

}  // namespace prism::vulkan
