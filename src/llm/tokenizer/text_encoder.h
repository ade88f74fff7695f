// The interface that all tokenizer models implement, and the vocabulary they share.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llm/tokenizer/text_table.h"
#include "prism/llm/tokenizer.h"

namespace prism::llm {

// U+2581, which marks a space in SentencePiece vocabularies.
inline constexpr std::string_view kSpaceMark = "\xe2\x96\x81";

struct Vocabulary {
  TextTable texts;
  std::vector<float> scores;     // one per text, or empty
  std::vector<TokenType> types;  // one per text
  int32_t unknown = -1;

  // The token of a byte, such as <0x0A>; -1: none.
  int32_t byte_token(unsigned char byte) const;
};

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends the tokens of a text without special tokens. after_special: the text is at the start or
  // follows a special token.
  virtual void encode(std::string_view text, bool after_special,
                      std::vector<int32_t>* ids) const = 0;
  // The bytes of a normal token, given its text.
  virtual std::string bytes_of(std::string_view token) const = 0;
};

// Each keeps a reference to the vocabulary and has its own file.
std::unique_ptr<TextEncoder> make_spm_encoder(const Vocabulary& vocabulary, bool space_prefix);
std::unique_ptr<TextEncoder> make_bpe_encoder(const Vocabulary& vocabulary,
                                              const TokenizerTables& tables);
std::unique_ptr<TextEncoder> make_wordpiece_encoder(const Vocabulary& vocabulary,
                                                    const TokenizerTables& tables);
std::unique_ptr<TextEncoder> make_unigram_encoder(const Vocabulary& vocabulary,
                                                  const TokenizerTables& tables, bool space_prefix);
std::unique_ptr<TextEncoder> make_rwkv_encoder(const Vocabulary& vocabulary);
// Throws kCorruptFile for a vocabulary without the tokens of all bytes or without sane scores.
std::unique_ptr<TextEncoder> make_plamo_encoder(const Vocabulary& vocabulary,
                                                const TokenizerTables& tables);
// For files without a vocabulary: throws kNotSupported.
std::unique_ptr<TextEncoder> make_no_encoder();

// Replaces every occurrence of `from` by `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace prism::llm
