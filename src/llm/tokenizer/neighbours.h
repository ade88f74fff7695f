// Finds where a text can be split before merging without changing the tokens.
#pragma once

#include <bitset>
#include <string_view>

#include "llm/tokenizer/text_encoder.h"

namespace prism::llm {

// The byte pairs that occur in any token. No merge spans a pair that never occurs, so a text can be
// split there and encoded piece by piece.
class Neighbours {
 public:
  explicit Neighbours(const TextTable& texts) {
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].find(kSpaceMark) == std::string_view::npos)
        add(texts[i]);
      else
        add(replace_all(texts[i], kSpaceMark, " "));
    }
  }
  // The end of the shortest leading piece. text must not be empty; spaces are not marked.
  size_t end_of_piece(std::string_view text) const {
    size_t end = 1;
    while (end < text.size() && (pairs_[place(text[end - 1], text[end])] ||
                                 (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80))
      ++end;
    return end;
  }

 private:
  static size_t place(char left, char right) {
    return static_cast<size_t>(static_cast<unsigned char>(left)) << 8 |
           static_cast<unsigned char>(right);
  }
  void add(std::string_view text) {
    for (size_t i = 1; i < text.size(); ++i) pairs_[place(text[i - 1], text[i])] = true;
  }
  std::bitset<65536> pairs_;
};

}  // namespace prism::llm
