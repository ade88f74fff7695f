// Short ways through the commonest expressions of pre_tokenizer_types.h, for plain ASCII.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace prism::llm {

// Cuts as its expression does, and stops before the first word that it cannot cut alone: one that a
// character beyond ASCII is part of, or stands next to.
class AsciiSplitter {
 public:
  virtual ~AsciiSplitter() = default;
  // Appends the words of text[at..]; the place where it stopped.
  virtual size_t split(std::string_view text, size_t at,
                       std::vector<std::string_view>* words) const = 0;
};

// Null where an expression has no short way.
const AsciiSplitter* ascii_splitter(std::string_view expression);

}  // namespace prism::llm
