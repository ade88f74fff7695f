// Splits a text into words before byte-level BPE, by the rule that `tokenizer.ggml.pre` names.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

// Other properties of models with a pre-tokenizer type.
struct PreTokenizerTraits {
  bool ignore_merges = false;  // a word that is a token is not merged
  bool add_bos = false;        // default if the file does not say
  // Tokens are plain UTF-8 with U+2581 for spaces, not GPT-2's byte alphabet.
  bool raw_text = false;
  // Raw text whose white space only separates words; the file may ask for lower case.
  bool drops_spaces = false;
  bool add_separator = false;  // default if the file does not say
};

class PreTokenizer {
 public:
  // Throws kNotSupported listing the known types; an empty type means "default".
  explicit PreTokenizer(std::string_view type);
  ~PreTokenizer();

  const PreTokenizerTraits& traits() const { return traits_; }
  // Appends the words of a text, whose concatenation is the text. Invalid UTF-8 bytes become
  // separate words.
  void split(std::string_view text, std::vector<std::string_view>* words) const;
  // The same without fast paths, for tests.
  void split_plainly(std::string_view text, std::vector<std::string_view>* words) const;

 private:
  class Pattern;
  void split_valid(std::string_view text, bool short_way,
                   std::vector<std::string_view>* words) const;
  PreTokenizerTraits traits_;
  std::vector<std::shared_ptr<const Pattern>> patterns_;  // applied in order
};

// Throws like the constructor of PreTokenizer.
const PreTokenizerTraits& pre_tokenizer_traits(std::string_view type);
std::vector<std::string_view> pre_tokenizer_types();

}  // namespace prism::llm
