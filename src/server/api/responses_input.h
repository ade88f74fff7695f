// The input of /v1/responses: instructions and items, translated to a conversation.
#pragma once

#include "server/api/chat_request.h"

namespace prism::server {

// Reads instructions, input, tools, tool_choice, parallel_tool_calls and reasoning. Throws
// JsonError for items that need a stored response or are not text.
ChatRequest read_responses_chat(const JsonView& body, const ServedModel& model);

}  // namespace prism::server
