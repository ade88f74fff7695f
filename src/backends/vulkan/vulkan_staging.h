// Host memory that copies between host and device go through: a ring of blocks, each used again
// once its copy is done.
#pragma once

#include <vector>

#include "backends/vulkan/vulkan_submissions.h"

namespace prism::vulkan {

class Staging {
 public:
  explicit Staging(Submissions& submissions) : submissions_(submissions) {}

  struct Place {
    Range range;
    std::byte* host = nullptr;
  };
  // Room for at most kBlockBytes, free until the submission now being recorded is done.
  Place take(uint64_t bytes);

  // Large enough that a copy over PCIe takes far longer than its submission; four let host and
  // device overlap.
  static constexpr uint64_t kBlockBytes = 4 << 20;
  static constexpr size_t kBlocks = 4;

 private:
  struct Used {
    Block block;
    Serial serial = 0;
  };
  Submissions& submissions_;
  std::vector<Used> blocks_;
  size_t current_ = 0;
  uint64_t filled_ = 0;
};

}  // namespace prism::vulkan
