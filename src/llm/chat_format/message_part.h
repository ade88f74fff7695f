// The parts of an assistant's message: content, reasoning and tool calls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

struct MessagePart {
  enum class Kind : uint8_t { content, reasoning, call_begin, call_arguments };
  Kind kind = Kind::content;
  std::string text;  // of call_begin: the name of the tool; of call_arguments: a piece of JSON
  friend bool operator==(const MessagePart&, const MessagePart&) = default;
};

using MessageParts = std::vector<MessagePart>;

// Appends text to the last part if that has the same kind; empty text adds nothing.
void add_part(MessageParts& parts, MessagePart::Kind kind, std::string_view text);

}  // namespace prism::llm
