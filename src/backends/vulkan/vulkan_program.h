// A compiled kernel: a compute pipeline, with the driver's binary kept on disk.
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
  std::vector<bool> writes_;  // by binding: does the kernel write the buffer
};

// capabilities: the device's, as the SPIR-V is to be printed for. Throws kCompile with what the
// driver said and where the SPIR-V can be found.
std::unique_ptr<Program> make_program(LogicalDevice& device, const ir::Kernel& lowered,
                                      const ir::Capabilities& capabilities);

}  // namespace prism::vulkan
