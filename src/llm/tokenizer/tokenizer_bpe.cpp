// Byte-level BPE (`gpt2`): splits text into words by the model's rule, then merges the bytes of
// each word in the order of their merge ranks.
#include "base/utf8.h"
#include "llm/tokenizer/byte_alphabet.h"
#include "llm/tokenizer/merge_queue.h"
#include "llm/tokenizer/pre_tokenizer.h"
#include "llm/tokenizer/text_encoder.h"
#include "llm/tokenizer/unicode.h"
#include "llm/tokenizer/word_cache.h"

namespace prism::llm {
namespace {

// Merge ranks by pair, looked up without copying the halves.
class MergeRanks {
 public:
  explicit MergeRanks(std::vector<std::string_view> merges)
      : merges_(std::move(merges)), slots_(merges_.size()) {
    for (size_t i = 0; i < merges_.size(); ++i) {
      // The alphabet contains no space, but raw vocabularies may start with one.
      const size_t space = merges_[i].find(' ', 1);
      if (space == std::string_view::npos) continue;
      slots_.insert(hash(merges_[i].substr(0, space), merges_[i].substr(space + 1)),
                    static_cast<int32_t>(i));
    }
  }
  int32_t find(std::string_view left, std::string_view right) const {
    return slots_.find(hash(left, right), [&](int32_t i) {
      const std::string_view merge = merges_[static_cast<size_t>(i)];
      return merge.size() == left.size() + 1 + right.size() && merge.starts_with(left) &&
             merge[left.size()] == ' ' && merge.ends_with(right);
    });
  }

 private:
  static uint64_t hash(std::string_view left, std::string_view right) {
    return mix_hash(hash_text(left) * 3 + hash_text(right));
  }
  std::vector<std::string_view> merges_;
  HashSlots slots_;
};

struct Scratch {
  WordCache cache;
  MergeQueue<int32_t> queue;
  std::vector<std::string_view> words;
  std::string marked, spelled;
};

class BpeEncoder final : public TextEncoder {
 public:
  BpeEncoder(const Vocabulary& vocabulary, const TokenizerTables& tables)
      : vocabulary_(vocabulary),
        splitter_(tables.pre),
        ranks_(tables.merges),
        lowercase_(splitter_.traits().drops_spaces && tables.lowercase.value_or(false)) {
    for (int byte = 0; byte < 256; ++byte) {
      const std::string& character = byte_alphabet().characters[static_cast<size_t>(byte)];
      byte_tokens_[byte] = splitter_.traits().raw_text
                               ? vocabulary.byte_token(static_cast<unsigned char>(byte))
                               : vocabulary.texts.find(character);
    }
  }

  void encode(std::string_view text, bool, std::vector<int32_t>* ids) const override {
    const Pool<Scratch>::Lease scratch(&pool_);
    const PreTokenizerTraits& traits = splitter_.traits();
    if (traits.raw_text) {
      scratch->marked = lowercase_            ? lower_case(text)
                        : traits.drops_spaces ? std::string(text)
                                              : replace_all(text, " ", kSpaceMark);
      text = scratch->marked;
    }
    scratch->words.clear();
    splitter_.split(text, &scratch->words);
    for (const std::string_view word : scratch->words) {
      if (traits.drops_spaces && is_white_space(utf8_at(word, 0).code)) continue;
      const uint64_t hash = hash_text(word);
      if (scratch->cache.find(word, hash, ids)) continue;
      const size_t before = ids->size();
      encode_word(word, *scratch, ids);
      scratch->cache.keep(word, hash, std::span(*ids).subspan(before));
    }
  }

  std::string bytes_of(std::string_view token) const override {
    if (splitter_.traits().raw_text) return replace_all(token, kSpaceMark, " ");
    std::string out;
    for (size_t at = 0; at < token.size();) {
      const Utf8Character next = utf8_at(token, at);
      const int16_t byte = next.code < 512 ? byte_alphabet().bytes[next.code] : int16_t{-1};
      if (byte >= 0)
        out += static_cast<char>(byte);
      else  // outside the alphabet: a token added as plain text
        out += token.substr(at, next.bytes);
      at += next.bytes;
    }
    return out;
  }

 private:
  static std::string lower_case(std::string_view text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const Utf8Character next = utf8_at(text, at);
      append_utf8(llm::lower_case(next.code), &out);
      at += next.bytes;
    }
    return out;
  }
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>* ids) const {
    std::string_view text = word;
    const bool raw = splitter_.traits().raw_text;
    if (!raw) {
      scratch.spelled.clear();
      for (const char c : word)
        scratch.spelled += byte_alphabet().characters[static_cast<unsigned char>(c)];
      text = scratch.spelled;
    }
    // Raw vocabularies have tokens for runs of newlines that no merge produces.
    const bool whole = splitter_.traits().ignore_merges || (raw && word.front() == '\n');
    if (whole) {
      if (const int32_t id = vocabulary_.texts.find(text); id >= 0) {
        ids->push_back(id);
        return;
      }
    }
    scratch.queue.clear(text);
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = utf8_at(text, at).bytes;
      scratch.queue.add_symbol(bytes);
      at += bytes;
    }
    scratch.queue.merge_all([&](std::string_view left, std::string_view right, int32_t* rank) {
      *rank = ranks_.find(left, right);
      return *rank >= 0;
    });
    scratch.queue.for_each([&](std::string_view symbol) {
      if (const int32_t id = vocabulary_.texts.find(symbol); id >= 0)
        ids->push_back(id);
      else if (splitter_.traits().drops_spaces && byte_tokens_[0] < 0)
        put_unknown(ids);
      else
        for (const char byte : raw ? std::string(symbol) : bytes_of(symbol)) put_byte(byte, ids);
    });
  }
  void put_byte(char byte, std::vector<int32_t>* ids) const {
    const int32_t id = byte_tokens_[static_cast<unsigned char>(byte)];
    if (id >= 0)
      ids->push_back(id);
    else
      put_unknown(ids);
  }
  void put_unknown(std::vector<int32_t>* ids) const {
    if (vocabulary_.unknown >= 0) ids->push_back(vocabulary_.unknown);
  }

  const Vocabulary& vocabulary_;
  PreTokenizer splitter_;
  MergeRanks ranks_;
  bool lowercase_;
  int32_t byte_tokens_[256];
  mutable Pool<Scratch> pool_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_bpe_encoder(const Vocabulary& vocabulary,
                                              const TokenizerTables& tables) {
  return std::make_unique<BpeEncoder>(vocabulary, tables);
}

}  // namespace prism::llm
