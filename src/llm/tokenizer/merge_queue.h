// Merges adjacent symbols, best pair first; shared by SentencePiece and byte-level BPE. Allocates
// nothing once its buffers have grown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace prism::llm {

// Order is a number: the pair with the smallest is merged first; ties go to the leftmost.
template <class Order>
class MergeQueue {
 public:
  void clear(std::string_view text) {
    text_ = text;
    symbols_.clear();
    pairs_.clear();
  }
  // Adds the next symbol, which covers this many bytes of the text.
  void add_symbol(size_t bytes) {
    const auto at = static_cast<int32_t>(symbols_.size());
    const uint32_t start = symbols_.empty() ? 0 : symbols_.back().start + symbols_.back().bytes;
    symbols_.push_back({start, static_cast<uint32_t>(bytes), at - 1, -1});
    if (at > 0) symbols_[static_cast<size_t>(at) - 1].next = at;
  }
  // `order_of(left, right, &order)` returns whether two adjacent symbols may merge, and their
  // order.
  template <class OrderOf>
  void merge_all(const OrderOf& order_of) {
    for (size_t i = 1; i < symbols_.size(); ++i)
      try_pair(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i), order_of);
    while (!pairs_.empty()) {
      std::pop_heap(pairs_.begin(), pairs_.end(), later);
      const Pair pair = pairs_.back();
      pairs_.pop_back();
      Symbol& left = symbols_[static_cast<size_t>(pair.left)];
      Symbol& right = symbols_[static_cast<size_t>(pair.right)];
      // A symbol only grows to the right or vanishes, so an equal sum means that neither has
      // changed since the pair was queued.
      if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != pair.bytes) continue;
      left.bytes += right.bytes;
      right.bytes = 0;
      left.next = right.next;
      if (right.next >= 0) symbols_[static_cast<size_t>(right.next)].prev = pair.left;
      try_pair(left.prev, pair.left, order_of);
      try_pair(pair.left, left.next, order_of);
    }
  }
  // Calls use for each remaining symbol in text order.
  template <class Use>
  void for_each(const Use& use) const {
    for (const Symbol& symbol : symbols_)
      if (symbol.bytes > 0) use(text_.substr(symbol.start, symbol.bytes));
  }

 private:
  struct Symbol {
    uint32_t start, bytes;
    int32_t prev, next;
  };
  struct Pair {
    Order order;
    int32_t left, right;
    uint32_t bytes;
  };
  static bool later(const Pair& a, const Pair& b) {
    return a.order > b.order || (a.order == b.order && a.left > b.left);
  }
  template <class OrderOf>
  void try_pair(int32_t left, int32_t right, const OrderOf& order_of) {
    if (left < 0 || right < 0) return;
    const Symbol& a = symbols_[static_cast<size_t>(left)];
    const Symbol& b = symbols_[static_cast<size_t>(right)];
    Order order;
    if (!order_of(text_.substr(a.start, a.bytes), text_.substr(b.start, b.bytes), &order)) return;
    pairs_.push_back({order, left, right, a.bytes + b.bytes});
    std::push_heap(pairs_.begin(), pairs_.end(), later);
  }

  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::vector<Pair> pairs_;
};

}  // namespace prism::llm
