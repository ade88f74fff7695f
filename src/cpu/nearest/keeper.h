// Keeper: the best entries of a stream of scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace prism::cpu {

// Entries are appended while they are above a threshold. When twice as many as wanted are there,
// the worse half is dropped and the threshold rises, so that an entry costs a constant time.
class Keeper {
 public:
  struct Entry {
    float key;     // larger is better
    uint32_t row;  // equal keys: smaller is better
    bool operator<(const Entry& other) const {
      return key != other.key ? key > other.key : row < other.row;
    }
  };

  explicit Keeper(size_t wanted) : wanted_(wanted) {}

  // A key at or below the threshold cannot be among the best: rows arrive in ascending order.
  float threshold() const { return threshold_; }
  void add(float key, uint32_t row) {
    entries_.push_back({key, row});
    if (entries_.size() >= 2 * wanted_ + kRoom) drop();
  }
  // The best entries, in no order.
  const std::vector<Entry>& finish() {
    drop();
    return entries_;
  }

 private:
  static constexpr size_t kRoom = 32;
  void drop() {
    if (entries_.size() <= wanted_) return;
    const auto last = entries_.begin() + static_cast<ptrdiff_t>(wanted_) - 1;
    std::nth_element(entries_.begin(), last, entries_.end());
    threshold_ = last->key;
    entries_.resize(wanted_);
  }

  size_t wanted_;
  float threshold_ = -std::numeric_limits<float>::infinity();
  std::vector<Entry> entries_;
};

}  // namespace prism::cpu
