// SentencePiece BPE (`llama`): merges the adjacent pair whose token has the best score; characters
// without a token become bytes.
#include "base/utf8.h"
#include "llm/tokenizer/merge_queue.h"
#include "llm/tokenizer/neighbours.h"
#include "llm/tokenizer/text_encoder.h"
#include "llm/tokenizer/word_cache.h"

namespace prism::llm {
namespace {

struct Scratch {
  WordCache cache;
  MergeQueue<float> queue;
  std::string prefixed, marked;
};

class SpmEncoder final : public TextEncoder {
 public:
  SpmEncoder(const Vocabulary& vocabulary, bool space_prefix)
      : vocabulary_(vocabulary), space_prefix_(space_prefix), neighbours_(vocabulary.texts) {
    for (int byte = 0; byte < 256; ++byte)
      byte_tokens_[byte] = vocabulary.byte_token(static_cast<unsigned char>(byte));
  }

  void encode(std::string_view text, bool after_special, std::vector<int32_t>* ids) const override {
    if (text.empty()) return;
    const Pool<Scratch>::Lease scratch(&pool_);
    if (space_prefix_ && after_special) {
      scratch->prefixed.assign(1, ' ').append(text);
      text = scratch->prefixed;
    }
    // The vocabulary does not distinguish the mark from a space.
    if (text.find(kSpaceMark) != text.npos)
      text = scratch->prefixed = replace_all(text, kSpaceMark, " ");
    while (!text.empty()) {
      const size_t end = neighbours_.end_of_piece(text);
      const std::string_view word = text.substr(0, end);
      text.remove_prefix(end);
      const uint64_t hash = hash_text(word);
      if (scratch->cache.find(word, hash, ids)) continue;
      const size_t before = ids->size();
      encode_word(word, *scratch, ids);
      scratch->cache.keep(word, hash, std::span(*ids).subspan(before));
    }
  }

  std::string bytes_of(std::string_view token) const override {
    return replace_all(token, kSpaceMark, " ");
  }

 private:
  void encode_word(std::string_view word, Scratch& scratch, std::vector<int32_t>* ids) const {
    scratch.marked.clear();
    for (const char c : word) {
      if (c == ' ')
        scratch.marked += kSpaceMark;
      else
        scratch.marked += c;
    }
    const std::string_view text = scratch.marked;
    scratch.queue.clear(text);
    for (size_t at = 0; at < text.size();) {
      const size_t bytes = utf8_at(text, at).bytes;
      scratch.queue.add_symbol(bytes);
      at += bytes;
    }
    scratch.queue.merge_all([&](std::string_view left, std::string_view right, float* order) {
      const int32_t id =
          vocabulary_.texts.find(std::string_view(left.data(), left.size() + right.size()));
      if (id < 0) return false;
      *order = -score(id);  // the best score first
      return true;
    });
    scratch.queue.for_each([&](std::string_view symbol) {
      if (const int32_t id = vocabulary_.texts.find(symbol); id >= 0) {
        ids->push_back(id);
        return;
      }
      for (const char c : symbol) {
        const int32_t id = byte_tokens_[static_cast<unsigned char>(c)];
        if (id >= 0) ids->push_back(id);
        // One unknown token per character, not per byte.
        if (id < 0 && vocabulary_.unknown >= 0) {
          ids->push_back(vocabulary_.unknown);
          break;
        }
      }
    });
  }
  float score(int32_t id) const {
    return vocabulary_.scores.empty() ? 0 : vocabulary_.scores[static_cast<size_t>(id)];
  }

  const Vocabulary& vocabulary_;
  bool space_prefix_;
  Neighbours neighbours_;
  int32_t byte_tokens_[256];
  mutable Pool<Scratch> pool_;
};

}  // namespace

std::unique_ptr<TextEncoder> make_spm_encoder(const Vocabulary& vocabulary, bool space_prefix) {
  return std::make_unique<SpmEncoder>(vocabulary, space_prefix);
}

}  // namespace prism::llm
