// The driver interface over one Vulkan device.
#include "backends/vulkan/vulkan_device.h"

#include <fmt/format.h>

#include "backends/vulkan/vulkan_memory.h"
#include "backends/vulkan/vulkan_program.h"
#include "backends/vulkan/vulkan_queue.h"
#include "backends/vulkan/vulkan_self_check.h"
#include "print/spirv/spirv.h"
#include "prism/error.h"

namespace prism::vulkan {

LogicalDevice::LogicalDevice(std::shared_ptr<Instance> instance, const PhysicalDevice& physical)
    : instance_(std::move(instance)), physical_(physical) {
  const std::vector<float> priorities(physical.queue_count, 1.0f);
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = physical.queue_family;
  queue.queueCount = physical.queue_count;
  queue.pQueuePriorities = priorities.data();
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &physical.features.core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<uint32_t>(physical.enabled_extensions.size());
  info.ppEnabledExtensionNames = physical.enabled_extensions.data();
  VkDevice device = VK_NULL_HANDLE;
  check(instance_->call().CreateDevice(physical.handle, &info, nullptr, &device),
        "opening the device");
  call_.load(instance_->call().GetDeviceProcAddr, device);
  device_ = Handle<VkDevice>(device,
                             [destroy = call_.DestroyDevice](VkDevice d) { destroy(d, nullptr); });
  queues_.resize(physical.queue_count);
  for (uint32_t i = 0; i < physical.queue_count; ++i)
    call_.GetDeviceQueue(device, physical.queue_family, i, &queues_[i]);
}

LogicalDevice::~LogicalDevice() { call_.DeviceWaitIdle(device_.get()); }

VkQueue LogicalDevice::next_queue() { return queues_[next_queue_++ % queues_.size()]; }

LogicalDevice::Layout LogicalDevice::layout(uint32_t buffers, uint32_t params) {
  Handle<VkDescriptorSetLayout>& set = set_layouts_[buffers];
  if (!set) {
    std::vector<VkDescriptorSetLayoutBinding> bindings(buffers);
    for (uint32_t i = 0; i < buffers; ++i) {
      bindings[i].binding = i;
      bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      bindings[i].descriptorCount = 1;
      bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    }
    VkDescriptorSetLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
    if (physical_.push_descriptors)
      info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
    info.bindingCount = buffers;
    info.pBindings = bindings.data();
    VkDescriptorSetLayout made = VK_NULL_HANDLE;
    check(call_.CreateDescriptorSetLayout(handle(), &info, nullptr, &made),
          "making a descriptor set layout");
    set = own(made, call_.DestroyDescriptorSetLayout);
  }
  Handle<VkPipelineLayout>& pipeline = pipeline_layouts_[{buffers, params}];
  if (!pipeline) {
    const VkDescriptorSetLayout sets[] = {set.get()};
    VkPushConstantRange range{};
    range.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
    range.size = 4 * params;
    VkPipelineLayoutCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
    info.setLayoutCount = 1;
    info.pSetLayouts = sets;
    info.pushConstantRangeCount = params ? 1 : 0;
    info.pPushConstantRanges = &range;
    VkPipelineLayout made = VK_NULL_HANDLE;
    check(call_.CreatePipelineLayout(handle(), &info, nullptr, &made), "making a pipeline layout");
    pipeline = own(made, call_.DestroyPipelineLayout);
  }
  return {set.get(), pipeline.get()};
}

namespace {

class Device final : public DeviceDriver {
 public:
  Device(std::shared_ptr<Instance> instance, std::unique_ptr<PhysicalDevice> physical)
      : instance_(std::move(instance)), physical_(std::move(physical)) {}

  const DeviceInfo& info() const override { return physical_->info; }
  uint64_t free_bytes() override {
    return free_device_bytes(*instance_, *physical_, allocator_ ? allocator_->used_bytes() : 0);
  }
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes) override {
    open();
    return allocator_->allocate(bytes);
  }
  std::unique_ptr<ProgramDriver> compile(const ir::Kernel& lowered) override {
    open();
    return make_program(*logical_, lowered, physical_->info.capabilities);
  }
  std::unique_ptr<QueueDriver> make_queue() override {
    open();
    return vulkan::make_queue(*logical_);
  }
  std::byte* host_pointer(MemoryDriver& memory) override {
    return static_cast<Memory&>(memory).mapped();
  }

 private:
  void open() {
    if (logical_) return;
    logical_ = std::make_unique<LogicalDevice>(instance_, *physical_);
    allocator_ = std::make_unique<Allocator>(*logical_);
    if (fuses_multiply_add(*logical_, *allocator_))
      physical_->info.capabilities.dialect_level |= spirv::kFusedMultiplyAdd;
  }

  std::shared_ptr<Instance> instance_;
  std::unique_ptr<PhysicalDevice> physical_;
  std::unique_ptr<LogicalDevice> logical_;
  std::unique_ptr<Allocator> allocator_;
};

}  // namespace

std::vector<std::shared_ptr<DeviceDriver>> make_devices(const std::shared_ptr<Instance>& instance,
                                                        const VulkanOptions& options,
                                                        std::vector<std::string>* passed_over) {
  std::vector<std::shared_ptr<DeviceDriver>> devices;
  for (const VkPhysicalDevice handle : instance->physical_devices()) {
    try {
      auto physical = examine(*instance, handle, static_cast<uint32_t>(devices.size()), options);
      devices.push_back(std::make_shared<Device>(instance, std::move(physical)));
    } catch (const Error& error) {
      passed_over->push_back(error.what());
    }
  }
  return devices;
}

}  // namespace prism::vulkan
