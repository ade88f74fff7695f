// Decides when to use the copy kernel.
#include "backends/vulkan/vulkan_copy.h"

#include <algorithm>
#include <array>

#include "lower/lower.h"
#include "runtime/backend_kernels.h"

namespace prism::vulkan {
namespace {

constexpr uint64_t kUnitBytes = 16;
constexpr uint64_t kLeast = 64 << 10;  // below, the launch costs more than it saves
constexpr uint64_t kPiece = 1 << 30;   // below the binding limit of almost every device, see copy()

}  // namespace

void CopyKernel::copy(Commands& commands, const Range& to, const Range& from) {
  const PhysicalDevice& physical = device_.physical();
  const uint64_t alignment =
      std::max<uint64_t>(16, physical.properties.limits.minStorageBufferOffsetAlignment);
  const uint64_t bytes = to.end - to.begin;
  if (!physical.copies_by_kernel || bytes < kLeast || to.begin % alignment ||
      from.begin % alignment)
    return commands.copy(to, from);
  if (!program_)
    program_ = make_program(device_, lower(copy_units(), physical.info.capabilities),
                            physical.info.capabilities);
  const uint64_t whole = bytes / kUnitBytes * kUnitBytes;
  const uint64_t piece = std::min<uint64_t>(
      kPiece, physical.info.capabilities.max_binding_bytes / alignment * alignment);
  for (uint64_t done = 0; done < whole; done += piece) {
    const uint64_t now = std::min(piece, whole - done);
    const std::array<Range, 2> ranges = {
        Range{from.buffer, from.begin + done, from.begin + done + now, false},
        Range{to.buffer, to.begin + done, to.begin + done + now, true}};
    const std::array<VkDescriptorBufferInfo, 2> buffers = {
        VkDescriptorBufferInfo{from.buffer, ranges[0].begin, now},
        VkDescriptorBufferInfo{to.buffer, ranges[1].begin, now}};
    const uint32_t units = static_cast<uint32_t>(now / kUnitBytes);
    commands.dispatch(*program_, ranges, buffers, std::span(&units, 1),
                      {(units + kCopyLanes * kCopyUnits - 1) / (kCopyLanes * kCopyUnits), 1, 1});
  }
  if (whole < bytes)
    commands.copy({to.buffer, to.begin + whole, to.end, true},
                  {from.buffer, from.begin + whole, from.end, false});
}

}  // namespace prism::vulkan
