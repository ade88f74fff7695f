// Host memory for staged copies: a ring of blocks, each reused once its copy is done.
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
  // Reserves at most kBlockBytes until the submission being recorded is done.
  Place take(uint64_t bytes);

  // Large enough that a PCIe copy takes far longer than its submission; four blocks let host and
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
