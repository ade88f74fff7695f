// Cuts texts into passages at natural places.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "search/files/file_content.h"

namespace prism::search {

struct SplitLimits {
  uint64_t max_tokens = 256;  // of a passage with its context
  std::function<uint64_t(std::string_view)> count_tokens;
};

// A passage is a range of lines, or a part of a long line.
struct Passage {
  uint32_t first_line = 1, last_line = 1;
  std::string context;    // the headings above it, or the first lines of the blocks around it
  std::string_view text;  // of the split text; begins and ends with a line that is not blank
};

// Every word of the text is in a passage. A passage ends where a definition, section or paragraph
// ends if the limits allow it; short ones are joined. After a cut inside of a statement or sentence
// the next passage repeats up to two lines.
std::vector<Passage> split_text(std::string_view text, Structure structure,
                                const SplitLimits& limits);

// Counts roughly as WordPiece does: a token for each symbol and for every 4 letters of a word.
uint64_t estimated_tokens(std::string_view text);

}  // namespace prism::search
