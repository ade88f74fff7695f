// Device memory: separate large allocations, and small ones in shared blocks.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "backends/vulkan/vulkan_device.h"

namespace prism::vulkan {

// One VkBuffer and its memory.
struct Block {
  Handle<VkDeviceMemory> memory;  // freed after the buffer
  Handle<VkBuffer> buffer;
  std::byte* mapped = nullptr;  // null unless host-visible
  uint64_t bytes = 0;
  // For a block shared by small allocations of one size: the free slots.
  std::vector<uint32_t> free_slots;
  uint32_t slot_count = 0;
};

// Throws kOutOfMemory.
Block make_block(LogicalDevice& device, uint64_t bytes, uint32_t memory_type,
                 VkBufferUsageFlags usage, bool map);

class Allocator;

class Memory final : public MemoryDriver {
 public:
  Memory(Allocator& allocator, std::shared_ptr<Block> block, uint64_t offset, uint64_t bytes,
         uint64_t reserved);
  ~Memory() override;
  uint64_t bytes() const override { return bytes_; }

  VkBuffer buffer() const { return block_->buffer.get(); }
  uint64_t offset() const { return offset_; }      // offset in the buffer
  uint64_t reserved() const { return reserved_; }  // allocated bytes, at least bytes()
  std::byte* mapped() const { return block_->mapped ? block_->mapped + offset_ : nullptr; }

 private:
  friend class Allocator;
  Allocator& allocator_;
  std::shared_ptr<Block> block_;
  uint64_t offset_, bytes_, reserved_;
};

class Allocator {
 public:
  explicit Allocator(LogicalDevice& device) : device_(device) {}

  // Throws kOutOfMemory with the device, the requested and the free bytes.
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes);
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  friend class Memory;
  void free(Memory& memory);
  std::shared_ptr<Block> new_block(uint64_t asked, uint64_t bytes);
  [[noreturn]] void out_of_memory(uint64_t asked, const std::string& why) const;

  LogicalDevice& device_;
  uint64_t used_bytes_ = 0;
  std::map<uint64_t, std::vector<std::shared_ptr<Block>>> small_;  // keyed by slot size
};

// Free bytes as reported by the driver, else the total minus this process's use.
uint64_t free_device_bytes(const Instance& instance, const PhysicalDevice& device, uint64_t used);

}  // namespace prism::vulkan
