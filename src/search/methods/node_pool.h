// NodePool and VisitedNodes: what a walk through a graph remembers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace prism::search {

// The nearest nodes of a walk in order, and which of them were expanded already.
class NodePool {
 public:
  void start(size_t capacity) {
    capacity_ = capacity;
    size_ = next_ = 0;
    if (entries_.size() < capacity + 1) entries_.resize(capacity + 1);
  }
  size_t size() const { return size_; }
  uint32_t node(size_t i) const { return static_cast<uint32_t>(entries_[i]) & ~kExpanded; }
  uint32_t distance(size_t i) const { return static_cast<uint32_t>(entries_[i] >> 32); }

  // The distance that a node must be below to enter.
  uint32_t limit() const {
    return size_ < capacity_ ? ~uint32_t{0} : static_cast<uint32_t>(entries_[size_ - 1] >> 32);
  }
  void add(uint32_t distance, uint32_t node) {
    const uint64_t entry = uint64_t{distance} << 32 | node;
    uint64_t* const begin = entries_.data();
    uint64_t* const at = std::upper_bound(begin, begin + size_, entry);
    std::memmove(at + 1, at, static_cast<size_t>(begin + size_ - at) * sizeof(uint64_t));
    *at = entry;
    size_ = std::min(size_ + 1, capacity_);
    next_ = std::min(next_, static_cast<size_t>(at - begin));
  }
  // The nearest node that was not expanded, which counts as expanded from now on.
  std::optional<uint32_t> next() {
    while (next_ < size_ && (entries_[next_] & kExpanded) != 0) ++next_;
    if (next_ == size_) return std::nullopt;
    entries_[next_] |= kExpanded;
    return node(next_++);
  }
  // The node that next() will probably return.
  uint32_t peek() const { return node(std::min(next_, size_ - 1)); }

 private:
  // In the highest bit of the node, so that an entry is one number; nodes are below 2^31.
  static constexpr uint32_t kExpanded = uint32_t{1} << 31;
  size_t capacity_ = 0, size_ = 0, next_ = 0;
  std::vector<uint64_t> entries_;  // distance, then node
};

// A set of nodes: a small hash table, which stays in the cache where a bitmap of all rows does not.
class VisitedNodes {
 public:
  void start() {
    if (slots_.empty()) slots_.resize(kLeast);
    std::fill(slots_.begin(), slots_.end(), kEmpty);
    count_ = 0;
  }
  // Whether the node is new.
  bool add(uint32_t node) {
    if (2 * count_ >= slots_.size()) grow();
    const bool is_new = put(slots_, node);
    count_ += is_new;
    return is_new;
  }

 private:
  static constexpr size_t kLeast = 4096;
  static constexpr uint32_t kEmpty = ~uint32_t{0};
  static bool put(std::vector<uint32_t>& slots, uint32_t node) {
    const size_t mask = slots.size() - 1;
    // Multiplication spreads neighbouring numbers.
    for (size_t at = node * uint64_t{0x9e3779b97f4a7c15} >> 32 & mask;; at = (at + 1) & mask) {
      if (slots[at] == node) return false;
      if (slots[at] != kEmpty) continue;
      slots[at] = node;
      return true;
    }
  }
  void grow() {
    std::vector<uint32_t> larger(slots_.size() * 4, kEmpty);
    for (const uint32_t node : slots_)
      if (node != kEmpty) put(larger, node);
    slots_.swap(larger);
  }

  std::vector<uint32_t> slots_;
  size_t count_ = 0;
};

}  // namespace prism::search
