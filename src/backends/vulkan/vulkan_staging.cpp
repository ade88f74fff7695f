// Allocates from the staging ring.
#include "backends/vulkan/vulkan_staging.h"

namespace prism::vulkan {

Staging::Place Staging::take(uint64_t bytes) {
  if (blocks_.empty() || filled_ + bytes > kBlockBytes) {
    if (blocks_.size() < kBlocks) {
      LogicalDevice& device = submissions_.device();
      blocks_.push_back(
          {make_block(device, kBlockBytes, device.physical().staging_memory_type,
                      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT, true),
           0});
      current_ = blocks_.size() - 1;
    } else {
      current_ = (current_ + 1) % blocks_.size();
      submissions_.wait(blocks_[current_].serial);
    }
    filled_ = 0;
  }
  Used& used = blocks_[current_];
  used.serial = submissions_.next();
  Place place;
  place.range = {used.block.buffer.get(), filled_, filled_ + bytes, false};
  place.host = used.block.mapped + filled_;
  filled_ += (bytes + 15) / 16 * 16;
  return place;
}

}  // namespace prism::vulkan
