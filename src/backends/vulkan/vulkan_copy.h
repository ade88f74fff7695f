// A kernel for large copies inside a device, where the driver's own copy is slow.
#pragma once

#include <memory>

#include "backends/vulkan/vulkan_commands.h"
#include "backends/vulkan/vulkan_program.h"

namespace prism::vulkan {

class CopyKernel {
 public:
  explicit CopyKernel(LogicalDevice& device) : device_(device) {}

  // Records the copy, with the kernel if that is faster and the ranges allow it.
  void copy(Commands& commands, const Range& to, const Range& from);

 private:
  LogicalDevice& device_;
  std::unique_ptr<Program> program_;
};

}  // namespace prism::vulkan
