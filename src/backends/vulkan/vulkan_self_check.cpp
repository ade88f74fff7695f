// Runs fma on values for which rounding twice gives zero.
#include "backends/vulkan/vulkan_self_check.h"

#include <array>

#include <fmt/format.h>

#include "backends/vulkan/vulkan_program.h"
#include "backends/vulkan/vulkan_queue.h"
#include "base/cache_folder.h"
#include "print/spirv/spirv.h"
#include "runtime/backend_kernels.h"

namespace prism::vulkan {
namespace {

constexpr const char* kCacheKind = "vulkan-fma";

bool measure(LogicalDevice& device, Allocator& allocator) {
  ir::Capabilities capabilities = device.physical().info.capabilities;
  capabilities.dialect_level |= spirv::kFusedMultiplyAdd;
  const ir::Kernel lowered = lower(fma_probe(), capabilities);
  const auto program = make_program(device, lowered, capabilities);
  const auto memory = allocator.allocate(16);
  const auto queue = make_queue(device);
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24; a rounded product loses the last term.
  std::array<float, 4> values = {1 + 0x1p-12f, 1 + 0x1p-12f, -(1 + 0x1p-11f), -1};
  queue->write(*memory, 0, std::as_bytes(std::span(values)));
  const Binding binding{memory.get(), 0, 16};
  LaunchCall call;
  call.program = program.get();
  call.kernel = &lowered;
  call.bindings = std::span(&binding, 1);
  queue->launch(call);
  queue->read(*memory, 0, std::as_writable_bytes(std::span(values)));
  return values[3] == 0x1p-24f;
}

}  // namespace

bool fuses_multiply_add(LogicalDevice& device, Allocator& allocator) {
  const VkPhysicalDeviceProperties& p = device.physical().properties;
  std::string key = fmt::format("{}|{}|{}|", p.vendorID, p.deviceID, p.driverVersion);
  for (const uint8_t byte : p.pipelineCacheUUID) key += fmt::format("{:02x}", byte);
  key = hash_text(key);
  if (const auto known = read_cached(kCacheKind, key); known && known->size() == 1)
    return known->front() == std::byte{1};
  const bool fused = measure(device, allocator);
  const std::array<std::byte, 1> content = {fused ? std::byte{1} : std::byte{0}};
  write_cached(kCacheKind, key, content);
  return fused;
}

}  // namespace prism::vulkan
