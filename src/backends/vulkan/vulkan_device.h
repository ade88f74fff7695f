// One Vulkan device in use: the logical device and the state shared by its memory, programs and
// queues.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/vulkan/vulkan_physical_device.h"
#include "base/handle.h"

namespace prism::vulkan {

// Created when the device is first used: listing devices starts none of them.
class LogicalDevice {
 public:
  LogicalDevice(std::shared_ptr<Instance> instance, const PhysicalDevice& physical);
  LogicalDevice(const LogicalDevice&) = delete;
  ~LogicalDevice();

  const DeviceFunctions& call() const { return call_; }
  VkDevice handle() const { return device_.get(); }
  const PhysicalDevice& physical() const { return physical_; }
  const std::string& id() const { return physical_.info.id; }
  Instance& instance() const { return *instance_; }
  void check(VkResult result, const char* doing) const { vulkan::check(result, id(), doing); }

  VkQueue next_queue();  // round-robin over the queues

  // The cached layout for kernels with this many buffers and 32-bit parameters.
  struct Layout {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };
  Layout layout(uint32_t buffers, uint32_t params);

  // A handle with the device function that frees it.
  template <class T, class Free>
  Handle<T> own(T handle, Free free) const {
    return Handle<T>(handle, [device = device_.get(), free](T h) { free(device, h, nullptr); });
  }

 private:
  std::shared_ptr<Instance> instance_;
  const PhysicalDevice& physical_;
  DeviceFunctions call_;
  Handle<VkDevice> device_;
  std::vector<VkQueue> queues_;
  size_t next_queue_ = 0;
  std::map<uint32_t, Handle<VkDescriptorSetLayout>> set_layouts_;
  std::map<std::pair<uint32_t, uint32_t>, Handle<VkPipelineLayout>> pipeline_layouts_;
};

// The devices of one instance; `passed_over` receives the reasons for skipping others.
std::vector<std::shared_ptr<DeviceDriver>> make_devices(const std::shared_ptr<Instance>& instance,
                                                        const VulkanOptions& options,
                                                        std::vector<std::string>* passed_over);

}  // namespace prism::vulkan
