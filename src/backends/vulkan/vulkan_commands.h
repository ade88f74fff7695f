// Records launches and copies into one command buffer, with the fewest barriers that preserve their
// order.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_hazards.h"
#include "backends/vulkan/vulkan_memory.h"

namespace prism::vulkan {

class Program;

class Commands {
 public:
  Commands(LogicalDevice& device, VkCommandPool pool);
  ~Commands();
  Commands(const Commands&) = delete;

  // Starts a new recording; the previous one must have finished. once: it is submitted only once.
  void begin(bool once);
  void end();

  void launch(const LaunchCall& call);
  // A launch with resolved bindings.
  void dispatch(const Program& program, std::span<const Range> ranges,
                std::span<const VkDescriptorBufferInfo> buffers, std::span<const uint32_t> params,
                std::array<uint32_t, 3> groups);
  void copy(const Range& to, const Range& from);
  void timestamp(VkQueryPool pool, uint32_t query);
  // Makes copied data visible to the host once the submission is done.
  void show_host();

  VkCommandBuffer handle() const { return commands_; }
  bool is_open() const { return open_; }
  uint32_t launches() const { return launches_; }
  const std::string& last_kernel() const { return last_kernel_; }

 private:
  void order(std::span<const Range> ranges, VkPipelineStageFlags stage);
  void barrier(VkPipelineStageFlags from, VkAccessFlags written, VkPipelineStageFlags to,
               VkAccessFlags used);
  void bind(VkPipelineLayout pipeline, VkDescriptorSetLayout set,
            std::span<const VkDescriptorBufferInfo> buffers);
  VkDescriptorSet new_set(VkDescriptorSetLayout layout);

  LogicalDevice& device_;
  VkCommandPool pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  HazardTracker hazards_;
  std::vector<Handle<VkDescriptorPool>> sets_;  // only without push descriptors
  size_t current_sets_ = 0;
  VkPipeline bound_ = VK_NULL_HANDLE;
  bool open_ = false;
  uint32_t launches_ = 0;
  std::string last_kernel_;
};

}  // namespace prism::vulkan
