// The vocabulary of a model that is trained here: byte-level BPE with GPT-2's pre-tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prism/llm/tokenizer.h"

namespace prism::llm {

class GgufWriter;

// Ends a text. Where it stands in training data, it separates texts.
inline constexpr std::string_view kEndOfText = "<|endoftext|>";

class TrainedVocabulary {
 public:
  // Learns at most `tokens` tokens, kEndOfText among them. Throws kInvalidArgument for fewer than
  // the 256 bytes and one more.
  static TrainedVocabulary of_words(std::string_view text, int64_t tokens);
  // One token for each character of the text. Other characters are encoded as bytes, so every text
  // can be.
  static TrainedVocabulary of_characters(std::string_view text);

  int64_t size() const { return static_cast<int64_t>(tables_->tokens.size()); }
  Tokenizer tokenizer() const;
  void write(GgufWriter& to) const;

 private:
  struct Tables {
    std::vector<std::string> tokens, merges;  // as model files have them
  };
  explicit TrainedVocabulary(const struct BpeMerges& learned);
  std::shared_ptr<const Tables> tables_;
};

}  // namespace prism::llm
