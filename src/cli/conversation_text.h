// A conversation as JSON text: {"model": ..., "messages": [{"role": ..., "content": ...}, ...]}.
#pragma once

#include <string>

#include "cli/conversations.h"

namespace prism::cli {

std::string conversation_text(const Conversation& conversation);
// Also reads the array of messages alone. Throws kCorruptFile with `path` for any other text.
Conversation parse_conversation(const std::string& text, const std::string& path);

}  // namespace prism::cli
