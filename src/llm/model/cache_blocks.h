// The blocks of a paged cache: which are free, and how many tables and prefixes use each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace prism::llm {

class CacheBlocks {
 public:
  // A table entry without a block. Block 0 exists in memory but is never handed out: padding is
  // written there.
  static constexpr int32_t kNone = 0;

  CacheBlocks() = default;
  explicit CacheBlocks(int64_t count);  // blocks 1 to count

  int64_t count() const { return static_cast<int64_t>(uses_.size()) - 1; }
  int64_t free() const { return static_cast<int64_t>(free_.size()); }
  int32_t uses(int32_t block) const { return uses_[static_cast<size_t>(block)]; }

  // Returns a block with one use, or kNone if none is free.
  int32_t allocate();
  // One use more or less; a block without uses is free. kNone is ignored.
  void share(int32_t block);
  void release(int32_t block);

 private:
  std::vector<int32_t> uses_ = {0};  // by block
  std::vector<int32_t> free_;
};

}  // namespace prism::llm
