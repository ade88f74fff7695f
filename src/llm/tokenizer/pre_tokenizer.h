// How a text is cut into words before byte-level BPE merges them: one rule a family of models,
// named by `tokenizer.ggml.pre`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

// What else a pre-type says about its models.
struct PreTokenizerTraits {
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
  bool add_bos = false;        // where the file does not say
  bool raw_text =
      false;  // tokens are plain UTF-8 with U+2581 for spaces, not GPT-2's byte alphabet
};

class PreTokenizer {
 public:
  // Throws kNotSupported for an unknown type, listing the known ones; an empty one is "default".
  explicit PreTokenizer(std::string_view type);
  ~PreTokenizer();

  const PreTokenizerTraits& traits() const { return traits_; }
  // Appends the words of a text; together they are the text. Bytes that are no UTF-8 are words of
  // their own.
  void split(std::string_view text, std::vector<std::string_view>* words) const;
  // The same by the regular expressions alone, for tests of the short ways.
  void split_plainly(std::string_view text, std::vector<std::string_view>* words) const;

 private:
  class Pattern;
  void split_valid(std::string_view text, bool short_way,
                   std::vector<std::string_view>* words) const;
  PreTokenizerTraits traits_;
  std::vector<std::unique_ptr<Pattern>> patterns_;  // each cuts what the one before has left
};

// Throws as the constructor of PreTokenizer.
const PreTokenizerTraits& pre_tokenizer_traits(std::string_view type);
std::vector<std::string_view> pre_tokenizer_types();

}  // namespace prism::llm
