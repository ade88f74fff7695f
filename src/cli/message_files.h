// Files in a message of a chat: @path is replaced by the file.
#pragma once

#include <string>

namespace prism::cli {

// Returns the text with each @path replaced by the name and the contents of that file. An @ inside
// a word (an e-mail address) and @@ stay. Throws kNotFound for a path that looks like a file (it
// has a slash or a dot) and cannot be read.
std::string with_files(const std::string& text);

}  // namespace prism::cli
