// WordPiece (`bert`): normalises text, splits it at spaces and punctuation, then covers each word
// greedily with the longest tokens.
#include <algorithm>

#include "base/utf8.h"
#include "llm/tokenizer/text_encoder.h"
#include "llm/tokenizer/unicode.h"

namespace prism::llm {
namespace {

// Longer words become unknown tokens, as in training.
constexpr size_t kMostCharacters = 100;

class WordPieceEncoder final : public TextEncoder {
 public:
  WordPieceEncoder(const Vocabulary& vocabulary, const TokenizerTables& tables)
      : vocabulary_(vocabulary),
        lowercase_(tables.lowercase.value_or(true)),
        strip_accents_(tables.strip_accents.value_or(lowercase_)) {
    for (size_t i = 0; i < vocabulary.texts.size(); ++i)
      longest_token_ = std::max(longest_token_, vocabulary.texts[i].size());
  }

  void encode(std::string_view text, bool, std::vector<int32_t>* ids) const override {
    Word word;
    std::vector<uint32_t> codes;
    for (size_t at = 0; at < text.size();) {
      const Utf8Character next = utf8_at(text, at);
      at += next.bytes;
      if (is_white_space(next.code)) {
        end_word(&word, ids);
        continue;
      }
      if (next.code == 0 || next.code == 0xfffd || is_control(next.code)) continue;
      codes.clear();
      if (strip_accents_)
        append_without_accents(next.code, &codes);
      else
        codes.push_back(next.code);
      for (const uint32_t code : codes) {
        // Ideographs are classified before accent removal, punctuation after it.
        const bool alone = is_chinese(next.code) || stands_alone(code);
        if (alone) end_word(&word, ids);
        append_utf8(lowercase_ ? lower_case(code) : code, &word.text);
        ++word.characters;
        if (alone) end_word(&word, ids);
      }
    }
    end_word(&word, ids);
  }

  std::string bytes_of(std::string_view token) const override {
    return replace_all(token, kSpaceMark, " ");
  }

 private:
  struct Word {
    std::string text{kSpaceMark};  // marks the first token of a word
    size_t characters = 0;
  };

  static bool stands_alone(uint32_t code) {
    if (code < 0x80) {
      const bool letter_or_digit = (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
                                   (code >= 'A' && code <= 'Z');
      return code > ' ' && code < 0x7f && !letter_or_digit;
    }
    return is_punctuation(code);
  }

  void end_word(Word* word, std::vector<int32_t>* ids) const {
    if (word->characters == 0) return;
    const size_t before = ids->size();
    const std::string_view text = word->text;
    bool known = word->characters <= kMostCharacters;
    for (size_t at = 0; known && at < text.size();) {
      size_t bytes = std::min(text.size() - at, longest_token_);
      int32_t id = -1;
      for (; bytes > 0; --bytes)
        if ((id = vocabulary_.texts.find(text.substr(at, bytes))) >= 0) break;
      known = id >= 0;
      if (known) ids->push_back(id);
      at += bytes;
    }
    if (!known) {
      ids->resize(before);
      if (vocabulary_.unknown >= 0) ids->push_back(vocabulary_.unknown);
    }
    word->text.resize(kSpaceMark.size());
    word->characters = 0;
  }

  const Vocabulary& vocabulary_;
  bool lowercase_, strip_accents_;
  size_t longest_token_ = 0;
};

}  // namespace

std::unique_ptr<TextEncoder> make_wordpiece_encoder(const Vocabulary& vocabulary,
                                                    const TokenizerTables& tables) {
  return std::make_unique<WordPieceEncoder>(vocabulary, tables);
}

}  // namespace prism::llm
