// Translates the items of /v1/responses to messages.
#include "server/api/responses_input.h"

#include <fmt/format.h>

#include "server/api/request_fields.h"

namespace prism::server {
namespace {

// Collects messages. Reasoning, content and calls of one answer are separate items, but one message
// of the assistant.
class ItemReader {
 public:
  explicit ItemReader(const ServedModel& model) : model_(model) {}

  void add(const JsonView& item) {
    const std::string type = item["type"].string_or("message");
    if (type == "message") {
      add_message(item);
    } else if (type == "reasoning") {
      for (const char* part : {"content", "summary"})
        for (const JsonView& each : item[part].items())
          assistant().reasoning_content += each["text"].string();
    } else if (type == "function_call") {
      Json call = {{"type", "function"}, {"id", item["call_id"].string()}};
      item["arguments"].string();  // it must be one
      call["function"] = {{"name", item["name"].string()},
                          {"arguments", read_arguments(item["arguments"])}};
      llm::ChatMessage& message = assistant();
      Json all = message.tool_calls.empty() ? Json::array() : Json::parse(message.tool_calls);
      all.push_back(std::move(call));
      message.tool_calls = all.dump();
    } else if (type == "function_call_output") {
      if (!item["output"]) item["output"].fail("is missing; it must be a string or an array");
      messages.push_back({.role = "tool",
                          .content = read_content(item["output"]),
                          .tool_call_id = item["call_id"].string()});
    } else if (type == "item_reference") {
      item["type"].fail("is \"item_reference\"; this server stores no responses, so send the item");
    } else {
      item["type"].fail(
          fmt::format("is \"{}\"; it must be message, reasoning, function_call or "
                      "function_call_output",
                      type));
    }
  }

  std::vector<llm::ChatMessage> messages;

 private:
  void add_message(const JsonView& item) {
    const std::string role = read_role(item["role"], model_, kResponsesRoles);
    if (!item["content"]) item["content"].fail("is missing; it must be a string or an array");
    const std::string content = read_content(item["content"]);
    if (role == "assistant")
      assistant().content += content;
    else
      messages.push_back({.role = role, .content = content});
  }

  // The message of the assistant that the next item belongs to.
  llm::ChatMessage& assistant() {
    if (messages.empty() || messages.back().role != "assistant")
      messages.push_back({.role = "assistant", .content = {}});
    return messages.back();
  }

  const ServedModel& model_;
};

// The tools of this API have no object "function" around their fields.
Json wrapped_tools(const JsonView& tools) {
  Json result = Json::array();
  for (const JsonView& each : tools.items()) {
    if (const std::string type = each["type"].string_or("function"); type != "function")
      each["type"].fail(fmt::format("is \"{}\"; this server knows tools of type function", type));
    if (each["name"].string().empty()) each["name"].fail("is empty");
    Json function = {{"name", each["name"].string()}};
    if (each["description"]) function["description"] = each["description"].string();
    if (const JsonView parameters = each["parameters"]) {
      check_parameters(parameters);
      function["parameters"] = parameters.json();
    }
    result.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return result;
}

}  // namespace

ChatRequest read_responses_chat(const JsonView& body, const ServedModel& model) {
  ItemReader reader(model);
  const JsonView input = body["input"];
  if (input.is_string()) {
    reader.messages.push_back({.role = "user", .content = input.string()});
  } else {
    if (!input.is_array()) input.fail("must be a string or an array of items");
    for (const JsonView& each : input.items()) reader.add(each);
    if (reader.messages.empty()) input.fail("is empty; it must have at least one item");
  }
  ChatRequest chat;
  chat.field = "input";
  chat.messages = std::move(reader.messages);
  if (const std::string instructions = body["instructions"].string_or(""); !instructions.empty()) {
    // Many templates take one system message only.
    if (chat.messages[0].role == "system")
      chat.messages[0].content = instructions + "\n" + chat.messages[0].content;
    else
      chat.messages.insert(chat.messages.begin(), {.role = "system", .content = instructions});
  }
  chat.tools = wrapped_tools(body["tools"]);
  read_tool_choice(body["tool_choice"], chat);
  chat.parallel_calls = body["parallel_tool_calls"].boolean_or(true);
  read_template_variables(body["chat_template_kwargs"], body["reasoning"]["effort"], chat);
  return chat;
}

}  // namespace prism::server
