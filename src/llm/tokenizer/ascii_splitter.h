// ASCII fast paths for the most common expressions of pre_tokenizer_types.h.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace prism::llm {

// Splits like its expression, and stops before the first word that contains or borders on a
// non-ASCII character.
class AsciiSplitter {
 public:
  virtual ~AsciiSplitter() = default;
  // Appends the words of text[at..] and returns where it stopped.
  virtual size_t split(std::string_view text, size_t at,
                       std::vector<std::string_view>* words) const = 0;
};

// Null if the expression has no fast path.
const AsciiSplitter* ascii_splitter(std::string_view expression);

}  // namespace prism::llm
