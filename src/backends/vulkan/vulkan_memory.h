// Device memory: large allocations of their own, small ones out of shared blocks.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "backends/vulkan/vulkan_device.h"

namespace prism::vulkan {

// One VkBuffer with the memory behind it.
struct Block {
  Handle<VkDeviceMemory> memory;  // freed after the buffer
  Handle<VkBuffer> buffer;
  std::byte* mapped = nullptr;  // where the host can see it
  uint64_t bytes = 0;
  // Of a block shared by small allocations of one size: which places are free.
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
  uint64_t offset() const { return offset_; }      // of this memory in its buffer
  uint64_t reserved() const { return reserved_; }  // bytes behind it, at least bytes()
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

  // Throws kOutOfMemory naming the device, what was asked and what is free.
  std::unique_ptr<MemoryDriver> allocate(uint64_t bytes);
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  friend class Memory;
  void free(Memory& memory);
  std::shared_ptr<Block> new_block(uint64_t asked, uint64_t bytes);
  [[noreturn]] void out_of_memory(uint64_t asked, const std::string& why) const;

  LogicalDevice& device_;
  uint64_t used_bytes_ = 0;
  std::map<uint64_t, std::vector<std::shared_ptr<Block>>> small_;  // by size of a slot
};

// What the driver says is free, else what this process has not used.
uint64_t free_device_bytes(const Instance& instance, const PhysicalDevice& device, uint64_t used);

}  // namespace prism::vulkan
