// A compiled kernel: a compute pipeline whose binary is cached on disk.
#pragma once

#include <memory>
#include <string>

#include "backends/vulkan/vulkan_device.h"

namespace prism::vulkan {

class Program final : public ProgramDriver {
 public:
  Program(std::string name, Handle<VkPipeline> pipeline, LogicalDevice::Layout layout,
          std::vector<bool> writes)
      : name_(std::move(name)),
        pipeline_(std::move(pipeline)),
        layout_(layout),
        writes_(std::move(writes)) {}

  const std::string& name() const { return name_; }
  VkPipeline pipeline() const { return pipeline_.get(); }
  const LogicalDevice::Layout& layout() const { return layout_; }
  bool writes(size_t binding) const { return writes_[binding]; }
  size_t buffers() const { return writes_.size(); }

 private:
  std::string name_;
  Handle<VkPipeline> pipeline_;
  LogicalDevice::Layout layout_;
  std::vector<bool> writes_;  // per binding: whether the kernel writes the buffer
};

// capabilities: those of the device, for which the SPIR-V is printed. Throws kCompile with the
// driver's message and the location of the SPIR-V.
std::unique_ptr<Program> make_program(LogicalDevice& device, const ir::Kernel& lowered,
                                      const ir::Capabilities& capabilities);

}  // namespace prism::vulkan
