// Colour, tables and a progress line; plain text where nobody looks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/system/is_terminal.h"

namespace prism::cli {

enum class Colour { red, green, yellow, dim, bold };

// The text in that colour on a terminal without NO_COLOR, else as it is.
std::string paint(Colour colour, const std::string& text, Stream stream = Stream::output);

// One line on standard error, rewritten in place; shown on a terminal only, and not in the first
// second.
void progress(const std::string& text);
void end_progress();

// Rows under a heading, columns as wide as their widest cell. colour_of may be empty.
std::string table(const std::vector<std::string>& heading,
                  const std::vector<std::vector<std::string>>& rows,
                  const std::function<std::string(const std::string& cell,
                                                  const std::string& padded)>& paint_cell = {});

// A piece of text on one line, its ends visible: control characters escaped, in quotes.
std::string shown_text(const std::string& text);

}  // namespace prism::cli
