// Fits the tool calls and results of a conversation to what a chat template can show.
#pragma once

#include <span>
#include <vector>

#include "llm/chat_format/chat_format.h"
#include "prism/llm/chat_template.h"

namespace prism::llm {

// Results without an id get that of the call they answer, by name and order. Ids are shortened
// where the template demands it, calls become content where it shows none, and several calls of
// one message become several messages where it shows only one.
std::vector<ChatMessage> fit_tool_messages(const ChatFormat& format,
                                           std::span<const ChatMessage> messages);

}  // namespace prism::llm
