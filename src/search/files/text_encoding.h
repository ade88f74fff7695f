// Texts of older encodings as UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace prism::search {

// UTF-16 with a byte order mark, or UTF-8 in which each invalid byte is a character of
// Windows-1252, which has the letters of Latin-1. The result is valid UTF-8 without a mark.
std::string as_utf8(std::string_view bytes);

}  // namespace prism::search
