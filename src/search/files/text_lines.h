// The lines of a text with what the splitter needs to know of each, and how good a cut before each
// line would be.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "search/files/file_content.h"

namespace prism::search {

// How natural a cut is.
enum class Cut : uint8_t {
  inside,     // of a sentence, a statement or a block of code in Markdown
  statement,  // after a block ends, at an item of a list, at the end of a sentence
  paragraph,  // an empty line
  member,     // a definition inside of another one; a heading of level 4 and below
  section     // a definition at the top, a heading
};

// A line, or a piece of a long one.
struct TextLine {
  size_t begin = 0, end = 0;  // bytes, without the newline
  uint32_t number = 1;
  uint32_t indent = 0;  // columns
  bool is_blank = false;
  bool continues = false;  // a piece that is not the first of its line
  uint32_t heading = 0;    // level of a Markdown heading; 0: none
  Cut cut = Cut::inside;   // before this line
};

// Lines longer than `most` bytes are cut at sentences or spaces.
std::vector<TextLine> text_lines(std::string_view text, size_t most);

void rate_cuts(std::string_view text, Structure structure, std::vector<TextLine>& lines);

}  // namespace prism::search
