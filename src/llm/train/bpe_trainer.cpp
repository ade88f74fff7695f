// The trainer of byte-level BPE: counts of pairs are kept up to date merge by merge.
#include "llm/train/bpe_trainer.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "base/utf8.h"
#include "llm/tokenizer/pre_tokenizer.h"

namespace prism::llm {

namespace {

using Pair = std::pair<int32_t, int32_t>;

uint64_t key_of(Pair pair) {
  return static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32 |
         static_cast<uint32_t>(pair.second);
}

BpeMerges bytes_alone() {
  BpeMerges result;
  for (int byte = 0; byte < 256; ++byte) result.tokens.emplace_back(1, static_cast<char>(byte));
  return result;
}

void for_each_document(std::string_view text, std::string_view separator,
                       const std::function<void(std::string_view)>& use) {
  while (!separator.empty()) {
    const size_t at = text.find(separator);
    if (at == text.npos) break;
    use(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  use(text);
}

// Unique words with their numbers, in the order of their first occurrence.
class WordCounts {
 public:
  void add(std::string_view word) {
    const auto [found, is_new] = places_.try_emplace(word, words_.size());
    if (is_new) words_.emplace_back(word, 0);
    ++words_[found->second].second;
  }
  const std::vector<std::pair<std::string_view, int64_t>>& words() const { return words_; }

 private:
  std::unordered_map<std::string_view, size_t> places_;
  std::vector<std::pair<std::string_view, int64_t>> words_;
};

WordCounts count_words(std::string_view text, std::string_view pre, std::string_view separator) {
  // A piece ends with a line, so the list of its words stays small. Only spaces at such an end can
  // be split otherwise than in the whole text.
  constexpr size_t kPiece = size_t{1} << 20;
  const PreTokenizer splitter(pre);
  WordCounts counts;
  std::vector<std::string_view> words;
  for_each_document(text, separator, [&](std::string_view document) {
    while (!document.empty()) {
      const size_t line = document.find('\n', std::min(kPiece, document.size()));
      const std::string_view piece = document.substr(0, line == document.npos ? line : line + 1);
      words.clear();
      splitter.split(piece, &words);
      for (const std::string_view word : words) counts.add(word);
      document.remove_prefix(piece.size());
    }
  });
  return counts;
}

class Trainer {
 public:
  explicit Trainer(const WordCounts& counts) {
    for (const auto& [word, count] : counts.words()) {
      for (size_t i = 0; i < word.size(); ++i) {
        const auto at = static_cast<int32_t>(places_.size());
        const bool is_last = i + 1 == word.size();
        places_.push_back({static_cast<unsigned char>(word[i]), i == 0 ? -1 : at - 1,
                           is_last ? -1 : at + 1, count});
        if (i > 0)
          change({places_[static_cast<size_t>(at) - 1].token, places_.back().token}, at - 1, count);
      }
    }
    for (const auto& [key, occurrences] : pairs_) offer(key, occurrences.count);
  }

  // The most frequent pair, or nothing if none occurs twice.
  bool next(Pair* best) {
    while (!queue_.empty()) {
      const Offer top = queue_.top();
      queue_.pop();
      const int64_t count = pairs_[top.key].count;
      if (count == top.count) {
        *best = {static_cast<int32_t>(top.key >> 32), static_cast<int32_t>(top.key)};
        return count > 1;
      }
      if (count > 0) offer(top.key, count);  // it has become rarer
    }
    return false;
  }

  void merge(Pair pair, int32_t token) {
    std::vector<int32_t> found = std::move(pairs_[key_of(pair)].places);
    std::ranges::sort(found);
    changed_.clear();
    for (const int32_t at : found) {
      Place& left = places_[static_cast<size_t>(at)];
      if (left.token != pair.first || left.next < 0) continue;
      Place& right = places_[static_cast<size_t>(left.next)];
      if (right.token != pair.second) continue;
      change(pair, -1, -left.count);
      if (left.previous >= 0) {
        const int32_t before = places_[static_cast<size_t>(left.previous)].token;
        change({before, pair.first}, -1, -left.count);
        change({before, token}, left.previous, left.count);
      }
      if (right.next >= 0) {
        Place& after = places_[static_cast<size_t>(right.next)];
        change({pair.second, after.token}, -1, -left.count);
        change({token, after.token}, at, left.count);
        after.previous = at;
      }
      left.token = token;
      left.next = right.next;
      right.token = -1;
    }
    for (const uint64_t key : changed_) offer(key, pairs_[key].count);
  }

 private:
  struct Place {  // of a token in a word
    int32_t token, previous, next;
    int64_t count;  // how often the word occurs
  };
  struct Occurrences {
    int64_t count = 0;
    std::vector<int32_t> places;  // of the left token; some may be outdated
  };
  struct Offer {
    int64_t count;
    uint64_t key;
    bool operator<(const Offer& other) const {
      return count != other.count ? count < other.count : key > other.key;
    }
  };

  void change(Pair pair, int32_t at, int64_t by) {
    Occurrences& of = pairs_[key_of(pair)];
    of.count += by;
    if (at < 0) return;
    of.places.push_back(at);
    changed_.insert(key_of(pair));
  }
  void offer(uint64_t key, int64_t count) {
    if (count > 1) queue_.push({count, key});
  }

  std::vector<Place> places_;
  std::unordered_map<uint64_t, Occurrences> pairs_;
  std::priority_queue<Offer> queue_;
  std::set<uint64_t> changed_;  // pairs that have become more frequent
};

}  // namespace

BpeMerges learn_bpe(std::string_view text, int64_t most_tokens, std::string_view pre,
                    std::string_view separator) {
  BpeMerges result = bytes_alone();
  std::unordered_map<std::string, int32_t> ids;  // two merges may make the same token
  Trainer trainer(count_words(text, pre, separator));
  Pair best;
  while (static_cast<int64_t>(result.tokens.size()) < most_tokens && trainer.next(&best)) {
    const std::string joined = result.tokens[static_cast<size_t>(best.first)] +
                               result.tokens[static_cast<size_t>(best.second)];
    const auto [found, is_new] =
        ids.try_emplace(joined, static_cast<int32_t>(result.tokens.size()));
    if (is_new) result.tokens.push_back(joined);
    result.merges.push_back(best);
    trainer.merge(best, found->second);
  }
  return result;
}

BpeMerges learn_characters(std::string_view text, std::string_view separator) {
  std::set<std::string_view> characters;  // of several bytes; in the order of their bytes
  for_each_document(text, separator, [&](std::string_view document) {
    for (size_t at = 0; at < document.size();) {
      const Utf8Character next = utf8_at(document, at);
      if (next.bytes > 1) characters.insert(document.substr(at, next.bytes));
      at += next.bytes;
    }
  });
  BpeMerges result = bytes_alone();
  std::unordered_map<std::string_view, int32_t> ids;
  for (const std::string_view character : characters) {
    auto left = static_cast<int32_t>(static_cast<unsigned char>(character[0]));
    for (size_t bytes = 2; bytes <= character.size(); ++bytes) {
      const std::string_view start = character.substr(0, bytes);
      const auto [found, is_new] =
          ids.try_emplace(start, static_cast<int32_t>(result.tokens.size()));
      if (is_new) {
        result.tokens.emplace_back(start);
        result.merges.emplace_back(left, static_cast<unsigned char>(character[bytes - 1]));
      }
      left = found->second;
    }
  }
  return result;
}

}  // namespace prism::llm
