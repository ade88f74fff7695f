// Implements the free list and reference counts of cache blocks.
#include "llm/model/cache_blocks.h"

#include <cassert>

namespace prism::llm {

CacheBlocks::CacheBlocks(int64_t count) : uses_(static_cast<size_t>(count) + 1) {
  for (auto block = static_cast<int32_t>(count); block > 0; --block) free_.push_back(block);
}

int32_t CacheBlocks::allocate() {
  if (free_.empty()) return kNone;
  const int32_t block = free_.back();
  free_.pop_back();
  uses_[static_cast<size_t>(block)] = 1;
  return block;
}

void CacheBlocks::share(int32_t block) {
  if (block == kNone) return;
  assert(uses(block) > 0);
  ++uses_[static_cast<size_t>(block)];
}

void CacheBlocks::release(int32_t block) {
  if (block == kNone) return;
  assert(uses(block) > 0);
  if (--uses_[static_cast<size_t>(block)] == 0) free_.push_back(block);
}

}  // namespace prism::llm
