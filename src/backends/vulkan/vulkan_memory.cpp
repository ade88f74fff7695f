// Allocates device memory and tracks its use.
#include "backends/vulkan/vulkan_memory.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/system/host_memory.h"
#include "prism/error.h"

namespace prism::vulkan {
namespace {

// Drivers may allow only 4,096 allocations, each taking tens of microseconds. Allocations up to
// this size share blocks, with one slot size (a power of two) per block.
constexpr uint64_t kLargestSmall = 256 << 10;
constexpr uint64_t kSmallestSlot = 256;  // no device needs a coarser storage buffer offset
constexpr uint64_t kSharedBlock = 4 << 20;

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                      VK_BUFFER_USAGE_TRANSFER_DST_BIT;

}  // namespace

Block make_block(LogicalDevice& device, uint64_t bytes, uint32_t memory_type,
                 VkBufferUsageFlags usage, bool map) {
  const DeviceFunctions& call = device.call();
  Block block;
  block.bytes = bytes;
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes;
  info.usage = usage;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  VkBuffer buffer = VK_NULL_HANDLE;
  device.check(call.CreateBuffer(device.handle(), &info, nullptr, &buffer), "making a buffer");
  block.buffer = device.own(buffer, call.DestroyBuffer);

  VkMemoryRequirements needs{};
  call.GetBufferMemoryRequirements(device.handle(), buffer, &needs);
  if (!(needs.memoryTypeBits >> memory_type & 1))
    throw Error(ErrorCode::kDriver,
                fmt::format("{}: its memory type {} cannot hold a storage buffer", device.id(),
                            memory_type));
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = memory_type;
  VkMemoryDedicatedAllocateInfo dedicated{};
  dedicated.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO;
  dedicated.buffer = buffer;
  allocation.pNext = &dedicated;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  device.check(call.AllocateMemory(device.handle(), &allocation, nullptr, &memory),
               "allocating memory");
  block.memory = device.own(memory, call.FreeMemory);
  device.check(call.BindBufferMemory(device.handle(), buffer, memory, 0),
               "binding memory to a buffer");
  if (map) {
    void* address = nullptr;
    device.check(call.MapMemory(device.handle(), memory, 0, VK_WHOLE_SIZE, 0, &address),
                 "mapping memory");
    block.mapped = static_cast<std::byte*>(address);
  }
  return block;
}

Memory::Memory(Allocator& allocator, std::shared_ptr<Block> block, uint64_t offset, uint64_t bytes,
               uint64_t reserved)
    : allocator_(allocator),
      block_(std::move(block)),
      offset_(offset),
      bytes_(bytes),
      reserved_(reserved) {}

Memory::~Memory() { allocator_.free(*this); }

void Allocator::out_of_memory(uint64_t asked, const std::string& why) const {
  const PhysicalDevice& physical = device_.physical();
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("allocate on {} ({}): {} bytes asked, {} bytes free of {}{}{}",
                          physical.info.id, physical.info.name, asked,
                          free_device_bytes(device_.instance(), physical, used_bytes_),
                          physical.info.total_bytes, why.empty() ? "" : "; ", why));
}

std::shared_ptr<Block> Allocator::new_block(uint64_t asked, uint64_t bytes) {
  const PhysicalDevice& physical = device_.physical();
  const uint64_t largest = std::min(physical.max_allocation_bytes, physical.max_buffer_bytes);
  if (bytes > largest)
    out_of_memory(asked, fmt::format("its driver allows at most {} per allocation", largest));
  // A software device uses host memory, which the system overcommits.
  if (bytes > physical.info.total_bytes ||
      (physical.info.software &&
       bytes > free_device_bytes(device_.instance(), physical, used_bytes_)))
    out_of_memory(asked, "");
  try {
    auto block = std::make_shared<Block>(
        make_block(device_, bytes, physical.device_memory_type, kUsage, physical.mapped));
    used_bytes_ += bytes;
    return block;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    out_of_memory(asked, error.what());
  }
}

std::unique_ptr<MemoryDriver> Allocator::allocate(uint64_t bytes) {
  if (bytes > kLargestSmall) {
    if (bytes > UINT64_MAX - 255) out_of_memory(bytes, "");
    const uint64_t rounded = (bytes + 255) / 256 * 256;  // vectors at the end may be read whole
    return std::make_unique<Memory>(*this, new_block(bytes, rounded), 0, bytes, rounded);
  }
  const uint64_t slot = std::max(kSmallestSlot, std::bit_ceil(std::max<uint64_t>(bytes, 1)));
  auto& blocks = small_[slot];
  auto place =
      std::ranges::find_if(blocks, [](const auto& block) { return !block->free_slots.empty(); });
  if (place == blocks.end()) {
    auto block = new_block(bytes, kSharedBlock);
    block->slot_count = static_cast<uint32_t>(kSharedBlock / slot);
    for (uint32_t i = block->slot_count; i > 0; --i) block->free_slots.push_back(i - 1);
    blocks.push_back(std::move(block));
    place = blocks.end() - 1;
  }
  const uint32_t index = (*place)->free_slots.back();
  (*place)->free_slots.pop_back();
  return std::make_unique<Memory>(*this, *place, index * slot, bytes, slot);
}

void Allocator::free(Memory& memory) {
  Block& block = *memory.block_;
  if (block.slot_count == 0) {
    used_bytes_ -= block.bytes;
    return;
  }
  block.free_slots.push_back(static_cast<uint32_t>(memory.offset_ / memory.reserved_));
  auto& blocks = small_[memory.reserved_];
  // Keep the last block of each size for the next allocation.
  if (block.free_slots.size() < block.slot_count || blocks.size() < 2) return;
  used_bytes_ -= block.bytes;
  std::erase(blocks, memory.block_);
}

uint64_t free_device_bytes(const Instance& instance, const PhysicalDevice& device, uint64_t used) {
  if (device.memory_budget) {
    VkPhysicalDeviceMemoryProperties2 memory{};
    memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
    chain(memory, budget, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    instance.call().GetPhysicalDeviceMemoryProperties2(device.handle, &memory);
    const uint64_t allowed = budget.heapBudget[device.device_heap],
                   taken = budget.heapUsage[device.device_heap];
    return allowed > taken ? allowed - taken : 0;
  }
  uint64_t left = device.info.total_bytes > used ? device.info.total_bytes - used : 0;
  if (device.info.unified) {
    const HostMemory host = host_memory();
    if (host.available_bytes) left = std::min(left, host.available_bytes);
  }
  return left;
}

}  // namespace prism::vulkan
