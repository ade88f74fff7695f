// Breaks help texts into lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace prism::cli {

inline constexpr size_t kTerminalColumns = 80;

// Breaks the lines of the text at spaces so that none is longer than `columns` if its words allow
// it. Lines that begin with a space (examples, tables) stay as they are. Every line but the first
// is indented by `indent` spaces, which count as columns.
std::string wrapped(const std::string& text, size_t columns = kTerminalColumns, size_t indent = 0);

}  // namespace prism::cli
