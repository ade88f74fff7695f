// Writes and parses conversations.
#include "cli/conversation_text.h"

#include <fmt/format.h>

#include "base/json.h"
#include "prism/error.h"

namespace prism::cli {

std::string conversation_text(const Conversation& conversation) {
  Json messages = Json::array();
  for (const llm::ChatMessage& each : conversation.messages)
    messages.push_back({{"role", each.role}, {"content", each.content}});
  return Json{{"model", conversation.model}, {"messages", messages}}.dump(2) + "\n";
}

Conversation parse_conversation(const std::string& text, const std::string& path) {
  try {
    const Json parsed = Json::parse(text);
    const JsonView all(parsed);
    Conversation result;
    if (all.is_object()) result.model = all["model"].string_or("");
    for (const JsonView& each : (all.is_object() ? all["messages"] : all).items()) {
      llm::ChatMessage message;
      message.role = each["role"].string();
      message.content = each["content"].string();
      result.messages.push_back(std::move(message));
    }
    return result;
  } catch (const Error& error) {
    throw Error(
        ErrorCode::kCorruptFile,
        fmt::format("\"{}\" is not a conversation ({}); /save writes one", path, error.what()));
  }
}

}  // namespace prism::cli
