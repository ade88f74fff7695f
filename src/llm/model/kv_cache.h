// The KV cache: keys and values of all texts in blocks of positions, with a table of blocks for
// each text, so that memory follows the positions in use.
//
// Layers that keep the same positions form a group with its own blocks and tables: layers with full
// attention keep all positions, windowed layers only those that a later query can see. What
// recurrent layers remember of a text is kept beside them (StateCache). Compressed keys, which
// stand for several positions, are those of a further layer behind the model's, which keeps all.
//
// Models with an encoder and a decoder: the first positions of a text are those that the encoder
// sees, at which the decoder's layers keep the keys and values of its result; the decoder's own
// tokens follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "llm/model/cache_blocks.h"
#include "llm/model/config.h"
#include "llm/model/state_cache.h"
#include "prism/llm/placement.h"
#include "prism/tensor.h"

namespace prism::llm {

// Positions of a block, a power of two: 128, or fewer if the context is shorter.
int64_t cache_block(int64_t context);
// A context rounded up to whole blocks.
int64_t whole_blocks(int64_t context);
// Positions in memory for a context: whole blocks, and one for padding.
int64_t cached_positions(int64_t context);
// The same for a layer with a window, in batches of so many rows: with those of the side slots.
int64_t windowed_positions(int64_t context, int64_t window, int64_t batch_rows);

// The type of an indexer's keys in a cache of this type: not quantised, because they are few.
ElementType indexer_type(ElementType cache);

struct CacheSize {
  int64_t slots = 1;       // texts at once
  int64_t side_slots = 0;  // tables beside them, for short work that takes blocks and returns them
  int64_t positions = 0;   // of one text at most
  int64_t shared = 0;      // of all texts together; 0: slots * positions, at least one full text
  int64_t batch_rows = 0;  // tokens of a text that are computed at once, at most
  int64_t block = 0;       // positions of a block, a power of two; 0: cache_block()
};

class KvCache {
 public:
  KvCache() = default;
  // Types: f32, f16, q8_0.
  KvCache(const Config& config, const Placement& placement, const CacheSize& size);

  int64_t slots() const { return size_.slots; }
  // Side slots have the numbers after those of texts.
  int64_t side_slots() const { return size_.side_slots; }
  int64_t positions() const { return size_.positions; }
  int64_t block() const { return block_; }
  int64_t tokens() const;  // of all texts together
  ElementType type() const { return type_; }
  uint64_t bytes() const;  // over all layers

  // [blocks, block, heads, length]: see Config::cached. Block 0 is unused by texts: the padding
  // rows of a batch are written there, and table entries without a block refer to it. What a layer
  // does not keep is an empty tensor.
  const Tensor& keys(int64_t layer) const { return parts(layer).keys; }
  const Tensor& values(int64_t layer) const { return parts(layer).values; }
  const Tensor& indexer(int64_t layer) const { return parts(layer).indexer; }
  // The layer that holds the compressed keys of a layer; -1: it has none, or no text is long enough
  // for one. Its blocks have [max(1, block / compression), heads, length]: the key whose last
  // position is p is at p % block / compression in the block of p.
  int64_t compressed_of(int64_t layer) const { return compressed_of_[static_cast<size_t>(layer)]; }
  // The layer that holds, as its indexer, the adapters that tokens switch on; -1: there are none.
  int64_t switch_layer() const { return switch_layer_; }
  // Those of a layer that are not empty.
  std::vector<const Tensor*> tensors(int64_t layer) const;

  // A block of a layer as bytes: keys, values, keys of the indexer, in the layout of files, which
  // is the same on all devices. read_block waits for the device.
  size_t layers() const { return group_of_.size(); }  // with those behind the model's
  uint64_t block_bytes(size_t layer) const;
  uint64_t block_bytes() const;  // over all layers
  void read_block(size_t layer, int32_t block, std::span<std::byte> to) const;
  void write_block(size_t layer, int32_t block, std::span<const std::byte> from);

  size_t groups() const { return groups_.size(); }
  size_t group_of(int64_t layer) const { return group_of_[static_cast<size_t>(layer)]; }
  int64_t window(size_t group) const { return groups_[group].window; }  // 0: none
  CacheBlocks& blocks(size_t group) { return groups_[group].blocks; }
  const CacheBlocks& blocks(size_t group) const { return groups_[group].blocks; }

  // The blocks of a text; entries of positions that it does not hold are CacheBlocks::kNone.
  int64_t table_entries() const { return (positions() + block_ - 1) / block_; }
  std::span<const int32_t> table(size_t group, int32_t slot) const;
  // The row of a position among all rows of a layer's cache.
  int64_t row(size_t group, int32_t slot, int64_t position) const;

  // Prepares a text to write positions [first, end), of which those before `first` are kept: gives
  // it the missing blocks, copies a block that others use and forgets positions that no query from
  // `first` on sees. Returns false, and gives no block, if too few are free even after reclaim().
  bool reserve(int32_t slot, int64_t first, int64_t end);
  // Called when a group has fewer free blocks than a text needs: frees one, or gives up its use of
  // `shared`, a block that the text would have to copy (or kNone). Returns false if it can do
  // neither. Group groups(): the states.
  std::function<bool(size_t group, int32_t shared)> reclaim;

  // Makes an empty text begin with `length` positions in blocks that others use, [group][entry],
  // and the state after them.
  void adopt(int32_t slot, std::span<const std::vector<int32_t>> tables, int32_t state,
             int64_t length);
  // Gives up the blocks from a length on; 0: all of them.
  void truncate(int32_t slot, int64_t length);
  // Whether a text can continue at a position: windowed layers still have what its query sees, and
  // recurrent layers have seen exactly the positions before.
  bool holds(int32_t slot, int64_t position) const;

  // The positions of a text that are the encoder's; 0: it is not encoded yet. truncate() to fewer
  // forgets all of them.
  int64_t encoded(int32_t slot) const { return encoded_[static_cast<size_t>(slot)]; }
  void set_encoded(int32_t slot, int64_t positions) {
    encoded_[static_cast<size_t>(slot)] = positions;
  }
  bool has_encoded() const { return has_encoded_; }  // whether the model has both parts

  StateCache& states() { return states_; }
  const StateCache& states() const { return states_; }

 private:
  struct Group {
    int64_t window = 0;
    bool chunked = false;
    CacheBlocks blocks;
    std::vector<int32_t> tables;  // [slots + side_slots, table_entries()]
  };
  std::span<int32_t> entries(Group& group, int32_t slot);
  // The first table entry that a query at a position sees.
  int64_t first_entry(const Group& group, int64_t position) const;
  void copy_block(size_t group, int32_t from, int32_t to);

  CacheSize size_;
  int64_t block_ = 1;
  ElementType type_ = DType::f16;
  StateCache states_;
  bool has_encoded_ = false;
  std::vector<int64_t> encoded_;  // by slot
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;  // by layer
  std::vector<int64_t> compressed_of_;
  int64_t switch_layer_ = -1;
  struct Parts {
    Tensor keys, values, indexer;
  };
  const Parts& parts(int64_t layer) const { return parts_[static_cast<size_t>(layer)]; }
  std::vector<Parts> parts_;  // by layer
};

// Returns the blocks of all side slots, at the latest when it is destroyed.
class SideWork {
 public:
  explicit SideWork(KvCache& cache) : cache_(cache) {}
  ~SideWork() { return_blocks(); }
  SideWork(const SideWork&) = delete;
  SideWork& operator=(const SideWork&) = delete;
  void return_blocks() const {
    for (int64_t i = 0; i < cache_.side_slots(); ++i)
      cache_.truncate(static_cast<int32_t>(cache_.slots() + i), 0);
  }

 private:
  KvCache& cache_;
};

}  // namespace prism::llm
