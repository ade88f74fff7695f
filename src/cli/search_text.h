// Found passages as text for people.
#pragma once

#include <cstdint>
#include <string>

#include "prism/file_search.h"

namespace prism::cli {

// "path:line" and up to `lines` lines of the passage around the best one, which ">" marks. Words of
// the question are coloured on a terminal. Text from files is escaped.
std::string passage_text(const search::FoundPassage& passage, uint64_t lines);

// The path relative to the current folder if it is inside of it.
std::string shown_path(const std::string& path);

}  // namespace prism::cli
