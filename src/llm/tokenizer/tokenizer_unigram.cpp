// SentencePiece unigram (`t5`): normalises text with the file's character map, then finds the
// segmentation with the largest sum of scores (log-probabilities).
#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "llm/tokenizer/neighbours.h"
#include "llm/tokenizer/text_encoder.h"
#include "llm/tokenizer/word_cache.h"

namespace prism::llm {
namespace {

// The penalty for an unknown character, relative to the rarest token.
constexpr double kUnknownPenalty = 10;
// The longest replacement of a character; NFKC's has 33 bytes. A hostile file could have any text
// made of megabytes.
constexpr size_t kMostReplacement = 256;

// SentencePiece's precompiled map of replacements: 4 bytes with the size of the trie; the trie, a
// double array of 32-bit units; the replacements, zero-terminated.
class CharacterMap {
 public:
  explicit CharacterMap(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {
    if (bytes_.size() < 4) return;
    const size_t trie = unit_at(0, 0);
    if (trie > bytes_.size() - 4) return;
    units_ = trie / 4;
    replacements_ = 4 + trie;
  }
  // The length of the longest entry that text[at..] starts with (0: none), and its replacement.
  size_t find(std::string_view text, size_t at, std::string_view* becomes) const {
    size_t longest = 0;
    if (units_ == 0) return 0;
    uint32_t node = offset(unit(0));
    for (size_t i = at; i < text.size(); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      node ^= byte;
      const uint32_t value = unit(node);
      // A unit stores the byte that leads to it; the highest bit marks a value.
      if (byte == 0 || (value & 0x800000ffu) != byte) break;
      node ^= offset(value);
      if ((value >> 8 & 1) == 0) continue;
      const size_t start = replacements_ + (unit(node) & 0x7fffffffu);
      const size_t rest = start < bytes_.size() ? bytes_.size() - start : 0;
      const std::string_view rest_of_map(
          reinterpret_cast<const char*>(bytes_.data()) + (rest > 0 ? start : 0),
          std::min(rest, kMostReplacement + 1));
      const size_t length = rest > 0 ? rest_of_map.find('\0') : rest_of_map.npos;
      if (length == rest_of_map.npos) break;  // a corrupt map
      longest = i + 1 - at;
      *becomes = rest_of_map.substr(0, length);
    }
    return longest;
  }

 private:
  uint32_t unit_at(size_t start, size_t i) const {
    const uint8_t* at = bytes_.data() + start + i * 4;
    return at[0] | at[1] << 8 | at[2] << 16 | static_cast<uint32_t>(at[3]) << 24;
  }
  // Beyond the trie: a unit that cannot be reached.
  uint32_t unit(uint32_t i) const { return i < units_ ? unit_at(4, i) : 0; }
  static uint32_t offset(uint32_t value) { return (value >> 10) << ((value & 0x200u) >> 6); }

  std::vector<uint8_t> bytes_;
  size_t units_ = 0, replacements_ = 0;
};

struct Scratch {
  WordCache cache;
  struct Best {
    double score;
    size_t start;  // start of the token that ends here
    int32_t id;
  };
  std::vector<Best> best;
  std::string normal;
};

class UnigramEncoder final : public TextEncoder {
 public:
  UnigramEncoder(const Vocabulary& vocabulary, const TokenizerTables& tables, bool space_prefix)
      : vocabulary_(vocabulary),
        map_(tables.character_map),
        neighbours_(vocabulary.texts),
        space_prefix_(space_prefix),
        merge_spaces_(tables.remove_extra_spaces.value_or(false)) {
    double least = 0;
    for (size_t i = 0; i < vocabulary.texts.size(); ++i) {
      longest_token_ = std::max(longest_token_, vocabulary.texts[i].size());
      if (vocabulary.types[i] == TokenType::normal) least = std::min(least, score(i));
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  void encode(std::string_view text, bool, std::vector<int32_t>* ids) const override {
    const Pool<Scratch>::Lease scratch(&pool_);
    normalise(text, &scratch->normal);
    std::string_view rest = scratch->normal;
    const size_t begin = ids->size();
    while (!rest.empty()) {
      const size_t end = neighbours_.end_of_piece(rest);
      const std::string_view word = rest.substr(0, end);
      rest.remove_prefix(end);
      const size_t before = ids->size();
      const uint64_t hash = hash_text(word);
      if (!scratch->cache.find(word, hash, ids)) {
        encode_word(replace_all(word, " ", kSpaceMark), *scratch, ids);
        scratch->cache.keep(word, hash, std::span(*ids).subspan(before));
      }
      // Adjacent unknown characters become one unknown token.
      if (before > begin && before < ids->size() && (*ids)[before] == vocabulary_.unknown &&
          (*ids)[before - 1] == vocabulary_.unknown)
        ids->erase(ids->begin() + static_cast<ptrdiff_t>(before));
    }
  }

  std::string bytes_of(std::string_view token) const override {
    return replace_all(token, kSpaceMark, " ");
  }

 private:
  double score(size_t id) const {
    return vocabulary_.scores.empty() ? 0 : static_cast<double>(vocabulary_.scores[id]);
  }

  void normalise(std::string_view text, std::string* out) const {
    out->clear();
    bool in_word = false, has_begun = false;
    const auto put_character = [&](char c) {
      // A space before the first word and, if runs of spaces are merged, before the others.
      if (!in_word && (has_begun ? merge_spaces_ : space_prefix_)) *out += ' ';
      in_word = has_begun = true;
      *out += c;
    };
    const auto put = [&](std::string_view part) {
      for (const char c : part) {
        if (c != ' ') {
          put_character(c);
          continue;
        }
        in_word = false;
        if (!merge_spaces_) *out += ' ';
      }
    };
    for (size_t at = 0; at < text.size();) {
      std::string_view becomes;
      size_t bytes = map_.find(text, at, &becomes);
      if (bytes == 0) {
        const Utf8Character next = utf8_at(text, at);
        bytes = next.bytes;
        becomes = next.is_valid ? text.substr(at, bytes) : std::string_view("\ufffd");
      }
      // A mark in the text is not merged with other spaces, except at the end.
      if (becomes == kSpaceMark)
        put_character(' ');
      else
        put(becomes);
      at += bytes;
    }
    while (merge_spaces_ && out->ends_with(' ')) out->pop_back();
  }

  void encode_word(const std::string& word, Scratch& scratch, std::vector<int32_t>* ids) const {
    constexpr double kUnreached = -std::numeric_limits<double>::infinity();
    std::vector<Scratch::Best>& best = scratch.best;
    best.assign(word.size() + 1, {kUnreached, 0, -1});
    best[0].score = 0;
    const std::string_view text = word;
    for (size_t at = 0; at < text.size(); at += utf8_at(text, at).bytes) {
      const size_t character = utf8_at(text, at).bytes;
      const auto offer = [&](size_t bytes, double gain, int32_t id) {
        Scratch::Best& there = best[at + bytes];
        if (best[at].score + gain > there.score) there = {best[at].score + gain, at, id};
      };
      bool has_character = false;
      for (size_t bytes = character; bytes <= longest_token_ && at + bytes <= text.size();) {
        const int32_t id = vocabulary_.texts.find(text.substr(at, bytes));
        if (id >= 0 && is_text(id)) {
          const auto place = static_cast<size_t>(id);
          const bool user = vocabulary_.types[place] == TokenType::user_defined;
          offer(bytes, user ? 0 : score(place), id);
          has_character = has_character || bytes == character;
        }
        if (at + bytes == text.size()) break;
        bytes += utf8_at(text, at + bytes).bytes;
      }
      if (!has_character) offer(character, unknown_score_, vocabulary_.unknown);
    }
    const size_t before = ids->size();
    for (size_t at = text.size(); at > 0; at = best[at].start) {
      const int32_t id = best[at].id;
      const bool again = ids->size() > before && id == vocabulary_.unknown && ids->back() == id;
      if (id >= 0 && !again) ids->push_back(id);
    }
    std::reverse(ids->begin() + static_cast<ptrdiff_t>(before), ids->end());
  }
  bool is_text(int32_t id) const {
    const TokenType type = vocabulary_.types[static_cast<size_t>(id)];
    return type == TokenType::normal || type == TokenType::user_defined ||
           type == TokenType::unused;
  }

  const Vocabulary& vocabulary_;
  CharacterMap map_;
  Neighbours neighbours_;
  bool space_prefix_, merge_spaces_;
  size_t longest_token_ = 0;
  double unknown_score_;
  mutable Pool<Scratch> pool_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_unigram_encoder(const Vocabulary& vocabulary,
                                                  const TokenizerTables& tables,
                                                  bool space_prefix) {
  return std::make_unique<UnigramEncoder>(vocabulary, tables, space_prefix);
}

}  // namespace prism::llm
