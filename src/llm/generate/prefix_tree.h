// The prefixes whose keys and values are in the KV cache: a tree of blocks keyed by token ids.
// Running and finished texts share its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "llm/model/cache_blocks.h"

namespace prism::llm {

class PrefixTree {
 public:
  // The blocks of a group of layers (KvCache). window: positions that a query sees, 0: all. A
  // prefix can be continued if the blocks that its next position sees are known.
  struct Group {
    CacheBlocks* blocks = nullptr;
    int64_t window = 0;
  };
  using Tables = std::vector<std::vector<int32_t>>;  // [group][entry]

  // block: positions of a block. states: of recurrent layers (StateCache), or null; a prefix can
  // then be continued only where its state is known. The blocks must outlive the tree.
  PrefixTree(int64_t block, std::vector<Group> groups, CacheBlocks* states = nullptr);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // The longest prefix of the tokens that can be continued, and its blocks; the last may be partly
  // used. The caller must share the blocks before it calls evict() or add().
  struct Match {
    int64_t length = 0;
    Tables tables;
    int32_t state = CacheBlocks::kNone;
  };
  Match find(std::span<const int32_t> tokens);

  // The blocks of the whole blocks of these tokens that the tree has, from the first on; those that
  // were forgotten are kNone. Does not count as a use.
  Tables known_blocks(std::span<const int32_t> tokens) const;

  // Remembers the tokens, whose positions are in these blocks, and shares the blocks that it does
  // not know yet. tables[group] has an entry for every block of tokens. state: after all of them,
  // or kNone.
  void add(std::span<const int32_t> tokens, const std::vector<std::span<const int32_t>>& tables,
           int32_t state = CacheBlocks::kNone);

  // Frees a block of a group that only the tree uses: the least recently used leaf, or for windowed
  // groups the least recently used block. If there is none, forgets a leaf with the block `shared`,
  // whose other user then has it alone. Returns false if there is neither.
  bool evict(size_t group, int32_t shared = CacheBlocks::kNone);
  // Forgets the least recently used state, one that only the tree uses if there is any. Returns
  // false if there is none.
  bool evict_state();
  // The number of blocks of a group that only the tree uses.
  int64_t evictable(size_t group) const;
  void clear();
  size_t size() const;  // nodes

 private:
  struct Node;
  void release(Node& node);
  bool can_continue(const Match& match, int64_t length) const;
  int64_t first_entry(const Group& group, int64_t position) const;
  void release_state(Node& node) const;

  int64_t block_;
  std::vector<Group> groups_;
  CacheBlocks* states_;
  std::unique_ptr<Node> root_;
  uint64_t uses_ = 0;
};

}  // namespace prism::llm
