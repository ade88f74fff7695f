// Allocates the states of each layer on that layer's device, and copies those that texts share.
#include "llm/model/state_cache.h"

#include <algorithm>

#include "llm/model/copy_range.h"
#include "prism/ops/elementwise.h"
#include "tensor/op.h"
#include "tensor/storage.h"

namespace prism::llm {

uint64_t state_bytes(const LayerConfig& layer) {
  uint64_t elements = 0;
  for (const Shape& each : layer.states) elements += static_cast<uint64_t>(each.elements());
  return elements * sizeof(float);
}

uint64_t state_memory(int64_t slots) { return 2 * static_cast<uint64_t>(slots) + 2; }

StateCache::StateCache(const Config& config, const Placement& placement, int64_t slots,
                       int64_t side_slots)
    : is_used_(config.has_states()),
      blocks_(is_used_ ? static_cast<int64_t>(state_memory(slots)) - 1 : 0),
      texts_(static_cast<size_t>(slots + side_slots)) {
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    std::vector<Tensor>& states = layers_.emplace_back();
    for (const Shape& each : config.at(layer).states) {
      Shape shape = {blocks_.count() + 1};
      for (int axis = 0; axis < each.rank(); ++axis) shape.append(each[axis]);
      states.push_back(zeros(shape, DType::f32, placement.layers[static_cast<size_t>(layer)]));
      eval({states.back()});
    }
  }
}

uint64_t StateCache::bytes() const {
  uint64_t sum = 0;
  for (const std::vector<Tensor>& layer : layers_)
    for (const Tensor& each : layer) sum += storage_bytes(each.shape(), each.type(), each.device());
  return sum;
}

bool StateCache::holds(int32_t slot, int64_t position) const {
  return !is_used_ || position == 0 ||
         (block_of(slot) != CacheBlocks::kNone && length(slot) == position);
}

bool StateCache::reserve(int32_t slot, int64_t position, const std::function<bool()>& reclaim) {
  if (!is_used_) return true;
  Text& text = texts_[static_cast<size_t>(slot)];
  const auto is_own = [&] {
    return text.block != CacheBlocks::kNone && blocks_.uses(text.block) == 1;
  };
  while (!is_own() && blocks_.free() == 0)
    if (!reclaim()) return false;
  if (is_own() && text.length == position) return true;
  const int32_t from = position == 0 ? CacheBlocks::kNone : text.block;
  if (!is_own()) {
    const int32_t block = blocks_.allocate();
    blocks_.release(text.block);
    text.block = block;
  }
  if (from != text.block) copy_block(from, text.block);
  if (position == 0) text.length = 0;
  return true;
}

void StateCache::advance(int32_t slot, int64_t position) {
  if (is_used_) texts_[static_cast<size_t>(slot)].length = position;
}

void StateCache::adopt(int32_t slot, int32_t block, int64_t length) {
  if (!is_used_) return;
  Text& text = texts_[static_cast<size_t>(slot)];
  blocks_.share(block);
  blocks_.release(text.block);
  text = {block, length};
}

void StateCache::truncate(int32_t slot, int64_t length) {
  if (!is_used_) return;
  Text& text = texts_[static_cast<size_t>(slot)];
  if (length > 0 && text.length <= length) return;
  blocks_.release(text.block);
  text = {};
}

void StateCache::copy_block(int32_t from, int32_t to) {
  for (const std::vector<Tensor>& layer : layers_)
    for (const Tensor& each : layer) {
      const uint64_t bytes = storage_bytes(each.shape(), each.type(), each.device()) /
                             static_cast<uint64_t>(each.size(0));
      copy_range(*each.node()->storage[0], static_cast<uint64_t>(from) * bytes,
                 static_cast<uint64_t>(to) * bytes, bytes);
    }
}

}  // namespace prism::llm
