// Finds the machine's Vulkan devices, or reports why there are none.
#include "backends/vulkan/vulkan_backend.h"

#include <algorithm>

#include <fmt/format.h>

#include "backends/vulkan/vulkan_device.h"
#include "backends/vulkan/vulkan_instance.h"
#include "runtime/discovery/device_node.h"

namespace prism {
namespace {

// The nodes that Vulkan drivers open; Linux numbers render nodes from 128.
std::vector<std::string> device_nodes() {
  std::vector<std::string> nodes;
  for (int i = 128; i < 144; ++i) nodes.push_back(fmt::format("/dev/dri/renderD{}", i));
  nodes.insert(nodes.end(), {"/dev/nvidiactl", "/dev/nvidia0"});
  return nodes;
}

class VulkanBackend final : public Backend {
 public:
  explicit VulkanBackend(VulkanOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "vulkan"; }
  std::string label() const override { return "Vulkan"; }

  Discovery discover() override {
    Discovery discovery;
    vulkan::Absence absence;
    const auto instance = vulkan::Instance::create(options_.libraries, &absence);
    if (!instance) {
      discovery.reason = absence.reason;
      discovery.next_step = absence.next_step;
      return discovery;
    }
    discovery.found = instance->found();
    std::vector<std::string> passed_over;
    discovery.devices = vulkan::make_devices(instance, options_, &passed_over);

    // A node that this user may not open hides a card from its driver. Report it even if a software
    // device was found.
    const bool hardware = std::ranges::any_of(
        discovery.devices, [](const auto& device) { return !device->info().software; });
    const auto denied = find_denied_node(device_nodes());
    if (!hardware && denied) {
      discovery.reason = denied->reason;
      discovery.next_step = denied->next_step;
    } else if (!passed_over.empty()) {
      discovery.reason = fmt::format("{}", fmt::join(passed_over, "; "));
      discovery.next_step = "update the driver";
    } else if (discovery.devices.empty()) {
      discovery.reason = fmt::format("{} finds drivers but no device", discovery.found);
      discovery.next_step =
          "check that the GPU's Vulkan driver is installed (vulkaninfo --summary lists what the "
          "loader sees)";
    }
    return discovery;
  }

 private:
  VulkanOptions options_;
};

}  // namespace

std::unique_ptr<Backend> make_vulkan_backend() { return make_vulkan_backend(VulkanOptions{}); }

std::unique_ptr<Backend> make_vulkan_backend(const VulkanOptions& options) {
  return std::make_unique<VulkanBackend>(options);
}

}  // namespace prism
