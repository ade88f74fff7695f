// The state encoders keep between words: a cache of recent words, and reusable buffers.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "llm/tokenizer/text_table.h"

namespace prism::llm {

// A fixed-size cache, two entries per hash: a new word takes the first and moves the old to the
// second.
class WordCache {
 public:
  WordCache() : entries_(kFirstEntries) {}

  // Appends the word's tokens and returns true if they are cached.
  bool find(std::string_view word, uint64_t hash, std::vector<int32_t>* ids) const {
    const size_t place = hash % entries_.size();
    for (const Entry* entry : {&entries_[place], &entries_[place ^ 1]}) {
      if (entry->length != word.size() || std::memcmp(entry->word, word.data(), word.size()) != 0)
        continue;
      ids->insert(ids->end(), entry->ids, entry->ids + entry->count);
      return true;
    }
    return false;
  }
  // Ignores words and token lists that are too long for an entry.
  void keep(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (word.empty() || word.size() > kMostBytes || ids.size() > kMostIds) return;
    if (++kept_ > kFirstEntries && entries_.size() < kEntries) entries_.assign(kEntries, {});
    const size_t place = hash % entries_.size();
    entries_[place ^ 1] = entries_[place];
    Entry& entry = entries_[place];
    std::memcpy(entry.word, word.data(), word.size());
    std::memcpy(entry.ids, ids.data(), ids.size() * sizeof(int32_t));
    entry.length = static_cast<uint8_t>(word.size());
    entry.count = static_cast<uint8_t>(ids.size());
  }

 private:
  // An entry is one cache line; 8,192 of them (512 KiB) fit in a core's L2 cache. Short texts do
  // with a few: to clear the others would take longer than to encode such a text.
  static constexpr size_t kEntries = 8192, kFirstEntries = 64, kMostBytes = 30, kMostIds = 8;
  struct Entry {
    int32_t ids[kMostIds];
    char word[kMostBytes];
    uint8_t length = 0, count = 0;
  };
  static_assert(sizeof(Entry) == 64);
  std::vector<Entry> entries_;
  size_t kept_ = 0;
};

// Lends objects to one caller each and creates more when all are in use, so that a const encoder
// serves several threads without shared buffers.
template <class T>
class Pool {
 public:
  class Lease {
   public:
    explicit Lease(Pool* pool) : pool_(pool) {
      {
        const std::lock_guard lock(pool->mutex_);
        if (!pool->idle_.empty()) {
          object_ = std::move(pool->idle_.back());
          pool->idle_.pop_back();
        }
      }
      if (!object_) object_ = std::make_unique<T>();
    }
    Lease(const Lease&) = delete;
    ~Lease() {
      const std::lock_guard lock(pool_->mutex_);
      if (pool_->idle_.size() < kMostIdle) pool_->idle_.push_back(std::move(object_));
    }
    T* operator->() const { return object_.get(); }
    T& operator*() const { return *object_; }

   private:
    Pool* pool_;
    std::unique_ptr<T> object_;
  };
  Pool() { idle_.reserve(kMostIdle); }  // returning an object must not throw

 private:
  static constexpr size_t kMostIdle = 16;
  std::mutex mutex_;
  std::vector<std::unique_ptr<T>> idle_;
};

}  // namespace prism::llm
