// A conversation: its messages, the user's words with files put in, and its file on disk.
#pragma once

#include <string>
#include <vector>

#include "prism/llm/chat_template.h"

namespace prism::cli {

// The text with each @path replaced by the file's name and contents, where such a file is; an @ in
// the middle of a word (an address) and @@ stay. Throws kNotFound for a path that looks like a file
// (has a slash or a dot) and cannot be read.
std::string with_files(const std::string& text);

// A conversation as JSON: [{"role": ..., "content": ...}, ...].
void save_messages(const std::vector<llm::ChatMessage>& messages, const std::string& path);
std::vector<llm::ChatMessage> load_messages(const std::string& path);

}  // namespace prism::cli
