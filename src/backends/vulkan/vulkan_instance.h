// One Vulkan instance: the library, its functions, and messages from the validation layer.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/vulkan/vulkan_functions.h"
#include "base/handle.h"
#include "base/system/dynamic_library.h"

namespace prism::vulkan {

// Why there is no instance, in words for users.
struct Absence {
  std::string reason;
  std::string next_step;
};

class Instance {
 public:
  // Returns null with the reason if the library or every driver is missing.
  // PRISM_VULKAN_VALIDATION=1|sync enables the validation layer if it is installed.
  static std::shared_ptr<Instance> create(const std::vector<std::string>& libraries,
                                          Absence* absence);

  const InstanceFunctions& call() const { return call_; }
  std::vector<VkPhysicalDevice> physical_devices() const;
  const std::string& found() const { return found_; }  // "libvulkan.so.1 1.3.239"
  bool validates() const { return static_cast<bool>(messenger_); }

  // Throws kDriver with the first validation error since the last call.
  void throw_complaints();

 private:
  static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                   VkDebugUtilsMessageTypeFlagsEXT types,
                                                   const VkDebugUtilsMessengerCallbackDataEXT* data,
                                                   void* user);

  DynamicLibrary library_;
  std::string found_;
  InstanceFunctions call_;
  std::mutex mutex_;
  std::vector<std::string> complaints_;
  Handle<VkInstance> instance_;
  Handle<VkDebugUtilsMessengerEXT> messenger_;
};

}  // namespace prism::vulkan
