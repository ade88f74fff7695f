// Colour, tables and a progress line on a terminal; plain text elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/is_terminal.h"

namespace prism::cli {

enum class Colour { red, green, yellow, dim, bold };

// Returns the text in that colour if the stream is a terminal and NO_COLOR is not set.
std::string paint(Colour colour, const std::string& text, Stream stream = Stream::output);

// Shows one line on standard error and rewrites it in place. Only on a terminal, and only after the
// first second.
void progress(const std::string& text);
void end_progress();  // removes the line

// Rows under a heading; a column is as wide as its widest cell. Newlines in cells are escaped.
// paint_cell may be empty.
std::string table(const std::vector<std::string>& heading,
                  const std::vector<std::vector<std::string>>& rows,
                  const std::function<std::string(const std::string& cell,
                                                  const std::string& padded)>& paint_cell = {});

// The text on one line, with control characters escaped and a backslash before each character of
// `also`.
std::string escaped_text(const std::string& text, std::string_view also = "\\");
// The same in quotes.
std::string shown_text(const std::string& text);

}  // namespace prism::cli
