// PLaMo 2 and 3: the segmentation of a text with the largest sum of scores, found from its end;
// characters without a token become the tokens of their bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/utf8.h"
#include "llm/tokenizer/text_encoder.h"
#include "prism/error.h"

namespace prism::llm {

namespace {

// Scores are compared as integers of this scale, like those of the published tokenizer.
constexpr double kScale = 1e4;
// The cost of a character without a token, and the least cost of a token that is never chosen.
constexpr int64_t kUnknownCost = 10'000'000, kUnusableCost = 20'000'000;
// Sums over a text of kMostBytes stay below 2^63. Published scores are logarithms above -100.
constexpr float kMostScore = 1e5f;
// A node takes about 70 bytes. A vocabulary of 100,000 tokens has about a million.
constexpr size_t kMostNodes = size_t{1} << 23;

std::vector<uint32_t> characters_of(std::string_view text) {
  std::vector<uint32_t> codes;
  codes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Utf8Character next = utf8_at(text, at);
    codes.push_back(next.code);
    at += next.bytes;
  }
  return codes;
}

// The suffixes of all tokens, as the trie of their reversed characters: the automaton of Aho and
// Corasick reads a text from its end and is in the longest suffix that begins at its place.
class SuffixTable {
 public:
  struct Node {
    uint32_t code = 0, length = 0;
    int32_t parent = -1;
    int32_t shorter = 0;   // the longest other suffix that this one begins with
    int32_t token = -1;    // of exactly this text
    int32_t longest = -1;  // the node of the longest token that this suffix begins with
    int64_t cost = 0;
  };

  // most: at least the number of suffixes.
  explicit SuffixTable(size_t most) : nodes_(1), edges_(most) {}

  void add(std::span<const uint32_t> text, int32_t token, int64_t cost) {
    int32_t at = 0;
    for (size_t i = text.size(); i-- > 0;) {
      int32_t next = child(at, text[i]);
      if (next < 0) {
        next = static_cast<int32_t>(nodes_.size());
        nodes_.push_back({.code = text[i], .length = node(at).length + 1, .parent = at});
        edges_.insert(hash_edge(at, text[i]), next);
      }
      at = next;
    }
    Node& found = nodes_[static_cast<size_t>(at)];
    found.token = token;
    found.cost = cost;
  }

  // After the last token. Shorter suffixes first: the links of longer ones follow theirs.
  void link() {
    std::vector<int32_t> order(nodes_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::ranges::stable_sort(order, {}, [&](int32_t id) { return node(id).length; });
    for (const int32_t id : order) {
      Node& each = nodes_[static_cast<size_t>(id)];
      if (each.length > 1) each.shorter = next(node(each.parent).shorter, each.code);
      each.longest = each.token >= 0 ? id : node(each.shorter).longest;
    }
  }

  const Node& node(int32_t id) const { return nodes_[static_cast<size_t>(id)]; }
  // The longest suffix that begins with this character and continues as `at` begins.
  int32_t next(int32_t at, uint32_t code) const {
    while (true) {
      const int32_t found = child(at, code);
      if (found >= 0) return found;
      if (at == 0) return 0;
      at = node(at).shorter;
    }
  }

 private:
  static uint64_t hash_edge(int32_t from, uint32_t code) {
    return mix_hash((static_cast<uint64_t>(from) << 32 | code) * 0x9e3779b97f4a7c15u);
  }
  int32_t child(int32_t from, uint32_t code) const {
    return edges_.find(hash_edge(from, code), [&](int32_t id) {
      return node(id).parent == from && node(id).code == code;
    });
  }

  std::vector<Node> nodes_;  // the first is the empty suffix
  HashSlots edges_;
};

class PlamoEncoder final : public TextEncoder {
 public:
  PlamoEncoder(const Vocabulary& vocabulary, const TokenizerTables& tables)
      : most_repeated_(tables.break_repeated.value_or(0)),
        most_spaces_(tables.break_spaces.value_or(0)),
        table_(checked_size(vocabulary)) {
    if (most_repeated_ < 0 || most_spaces_ < 0)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("tokenizer: the text is cut around {} equal characters and {} "
                              "spaces; positive numbers are needed",
                              most_repeated_, most_spaces_));
    for (int byte = 0; byte < 256; ++byte) {
      const std::string name = fmt::format("<0x{:02X}>", byte);
      const int32_t id = vocabulary.texts.find(name);
      if (id < 0 || vocabulary.types[static_cast<size_t>(id)] != TokenType::byte)
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("tokenizer: the byte token {} is absent; plamo2 needs all 256, and "
                                "tokenizer.ggml.token_type must mark them as bytes",
                                name));
      bytes_[static_cast<size_t>(byte)] = id;
    }
    for (size_t i = 0; i < vocabulary.texts.size(); ++i) {
      if (!is_text(vocabulary, i)) continue;
      const int64_t cost = -std::llround(static_cast<double>(vocabulary.scores[i]) * kScale);
      if (cost < kUnusableCost)
        table_.add(characters_of(vocabulary.texts[i]), static_cast<int32_t>(i), cost);
    }
    table_.link();
  }

  void encode(std::string_view text, bool, std::vector<int32_t>* ids) const override {
    const std::vector<uint32_t> codes = characters_of(text);
    const std::span<const uint32_t> all(codes);
    size_t begin = 0;
    // PLaMo 3: no token spans the border of a long run of one character.
    for (size_t at = 0; at < codes.size();) {
      size_t end = at + 1;
      while (end < codes.size() && codes[end] == codes[at]) ++end;
      if (is_cut_out(codes[at], end - at)) {
        encode_part(all.subspan(begin, at - begin), ids);
        encode_part(all.subspan(at, end - at), ids);
        begin = end;
      }
      at = end;
    }
    encode_part(all.subspan(begin), ids);
  }
  std::string bytes_of(std::string_view token) const override { return std::string(token); }

 private:
  // Control tokens are found before; those that only fill up the vocabulary are in no text.
  static bool is_text(const Vocabulary& vocabulary, size_t id) {
    const TokenType type = vocabulary.types[id];
    const std::string_view text = vocabulary.texts[id];
    return (type == TokenType::normal || type == TokenType::user_defined) && !text.empty() &&
           utf8_valid_end(text, 0) == text.size();
  }

  // Checks the scores, and that the table of suffixes is of a sane size; returns its most nodes.
  static size_t checked_size(const Vocabulary& vocabulary) {
    const size_t count = vocabulary.texts.size();
    if (vocabulary.scores.size() < count)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("tokenizer: tokenizer.ggml.scores has {} entries for {} tokens; "
                              "plamo2 needs one each",
                              vocabulary.scores.size(), count));
    size_t nodes = 1;
    for (size_t i = 0; i < count; ++i) {
      if (!(std::fabs(vocabulary.scores[i]) <= kMostScore))
        throw Error(ErrorCode::kCorruptFile,
                    fmt::format("tokenizer: token {} has the score {}; plamo2 needs a finite one "
                                "between -{} and {}",
                                i, vocabulary.scores[i], kMostScore, kMostScore));
      if (is_text(vocabulary, i)) nodes += vocabulary.texts[i].size();
    }
    if (nodes > kMostNodes)
      throw Error(ErrorCode::kCorruptFile,
                  fmt::format("tokenizer: the tokens have {} bytes together, at most {} can be in "
                              "the table of plamo2",
                              nodes - 1, kMostNodes - 1));
    return nodes;
  }

  bool is_cut_out(uint32_t code, size_t run) const {
    const auto length = static_cast<int64_t>(run);
    return (most_repeated_ > 0 && length >= most_repeated_ && code != '\n') ||
           (most_spaces_ > 0 && length >= most_spaces_ && code == ' ');
  }

  void encode_part(std::span<const uint32_t> codes, std::vector<int32_t>* ids) const {
    struct Best {
      int64_t cost;  // of the text from here to the end
      uint32_t length;
      int32_t token;
    };
    std::vector<Best> best(codes.size() + 1, {0, 0, -1});
    int32_t suffix = 0;
    for (size_t at = codes.size(); at-- > 0;) {
      suffix = table_.next(suffix, codes[at]);
      Best& here = best[at];
      here.cost = std::numeric_limits<int64_t>::max();
      const auto offer = [&](uint32_t length, int64_t cost, int32_t token) {
        cost += best[at + length].cost;
        if (cost < here.cost) here = {cost, length, token};
      };
      // Of equal sums the one with the longest token counts.
      for (int32_t i = table_.node(suffix).longest; i >= 0;) {
        const SuffixTable::Node& found = table_.node(i);
        offer(found.length, found.cost, found.token);
        i = table_.node(found.shorter).longest;
      }
      offer(1, kUnknownCost, -1);
    }
    for (size_t at = 0; at < codes.size(); at += best[at].length) {
      if (best[at].token >= 0) {
        ids->push_back(best[at].token);
        continue;
      }
      std::string bytes;
      append_utf8(codes[at], &bytes);
      for (const char byte : bytes) ids->push_back(bytes_[static_cast<unsigned char>(byte)]);
    }
  }

  int64_t most_repeated_, most_spaces_;  // 0: no limit
  std::array<int32_t, 256> bytes_{};
  SuffixTable table_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_plamo_encoder(const Vocabulary& vocabulary,
                                                const TokenizerTables& tables) {
  return std::make_unique<PlamoEncoder>(vocabulary, tables);
}

}  // namespace prism::llm
