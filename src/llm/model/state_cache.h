// The states of recurrent layers: a block for each text that holds what its layers remember, and
// blocks for the states of finished prefixes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "llm/model/cache_blocks.h"
#include "llm/model/config.h"
#include "prism/llm/placement.h"
#include "prism/tensor.h"

namespace prism::llm {

// Bytes of the states of a text in a layer.
uint64_t state_bytes(const LayerConfig& layer);
// States of that many texts in memory: one of each, one of a prefix for each, one for the side
// slots together, and the zeros.
uint64_t state_memory(int64_t slots);

class StateCache {
 public:
  StateCache() = default;
  // slots: of texts; side_slots: beside them.
  StateCache(const Config& config, const Placement& placement, int64_t slots, int64_t side_slots);

  bool is_used() const { return is_used_; }  // whether the model has states
  CacheBlocks& blocks() { return blocks_; }
  const CacheBlocks& blocks() const { return blocks_; }
  uint64_t bytes() const;

  // f32 [blocks, ...LayerConfig::states]. Block 0 stays zero: the state before the first token.
  const std::vector<Tensor>& of_layer(int64_t layer) const {
    return layers_[static_cast<size_t>(layer)];
  }
  int32_t block_of(int32_t slot) const { return texts_[static_cast<size_t>(slot)].block; }
  // The tokens that the state of a text has seen.
  int64_t length(int32_t slot) const { return texts_[static_cast<size_t>(slot)].length; }
  // Whether a text can continue at a position.
  bool holds(int32_t slot, int64_t position) const;

  // Gives a text a block of its own to continue at a position; at 0 its state is zero. Returns
  // false if no block is free even after reclaim(), which frees one or gives up the use of a block.
  bool reserve(int32_t slot, int64_t position, const std::function<bool()>& reclaim);
  // The rows of the text up to a position are queued.
  void advance(int32_t slot, int64_t position);
  // Makes a text begin with the state of a prefix that others use.
  void adopt(int32_t slot, int32_t block, int64_t length);
  // Gives up the state if it has seen more tokens.
  void truncate(int32_t slot, int64_t length);

 private:
  struct Text {
    int32_t block = CacheBlocks::kNone;
    int64_t length = 0;
  };
  void copy_block(int32_t from, int32_t to);

  bool is_used_ = false;
  CacheBlocks blocks_;
  std::vector<Text> texts_;                  // by slot
  std::vector<std::vector<Tensor>> layers_;  // by layer
};

}  // namespace prism::llm
