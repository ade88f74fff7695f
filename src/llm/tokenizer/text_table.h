// Hash tables over texts stored elsewhere: looks up 150,000 tokens without copying them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace prism::llm {

inline uint64_t mix_hash(uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93u;  // an odd constant with well distributed bits
  value ^= value >> 29;
  return value;
}

inline uint64_t hash_text(std::string_view text) {
  uint64_t hash = text.size() * 0x9e3779b97f4a7c15u;
  const char* at = text.data();
  size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    hash = mix_hash(hash ^ word) * 0x9e3779b97f4a7c15u;
  }
  uint64_t tail = 0;
  if (left > 0) std::memcpy(&tail, at, left);
  return mix_hash(hash ^ tail);
}

// Finds numbers by hash; the caller resolves collisions.
class HashSlots {
 public:
  explicit HashSlots(size_t count) : slots_(std::bit_ceil(count * 2 + 2)) {}

  void insert(uint64_t hash, int32_t number) {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].number >= 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {static_cast<uint32_t>(hash >> 32), number};
  }
  // The first number with this hash that `is` accepts, or -1.
  template <class Is>
  int32_t find(uint64_t hash, const Is& is) const {
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & (slots_.size() - 1); slots_[at].number >= 0;
         at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].tag == tag && is(slots_[at].number)) return slots_[at].number;
    }
    return -1;
  }

 private:
  struct Slot {
    uint32_t tag = 0;
    int32_t number = -1;
  };
  std::vector<Slot> slots_;
};

// Maps texts to their indices in a list. Finds the first of equal texts; never finds empty ones.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string_view> texts)
      : texts_(std::move(texts)), slots_(texts_.size()) {
    for (size_t i = 0; i < texts_.size(); ++i)
      if (!texts_[i].empty()) slots_.insert(hash_text(texts_[i]), static_cast<int32_t>(i));
  }
  size_t size() const { return texts_.size(); }
  std::string_view operator[](size_t i) const { return texts_[i]; }
  int32_t find(std::string_view text) const { return find(text, hash_text(text)); }
  int32_t find(std::string_view text, uint64_t hash) const {
    return slots_.find(hash, [&](int32_t i) { return texts_[static_cast<size_t>(i)] == text; });
  }

 private:
  std::vector<std::string_view> texts_;
  HashSlots slots_;
};

}  // namespace prism::llm
