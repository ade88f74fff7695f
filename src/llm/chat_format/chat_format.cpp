// Recognises the formats of chat templates and writes the schema of a forced call.
#include "llm/chat_format/chat_format.h"

#include "base/json.h"

namespace prism::llm {

ChatFormat ChatFormat::of(std::string_view text) {
  const auto has = [&](std::string_view mark) { return text.find(mark) != text.npos; };
  ChatFormat format;
  if (has("<|channel|>"))
    format.calls = CallFormat::harmony;
  else if (has("<｜tool▁call▁begin｜>"))
    format.calls = CallFormat::deepseek;
  else if (has("[TOOL_CALLS]"))
    format.calls = CallFormat::mistral;
  else if (has("<function="))
    format.calls = CallFormat::xml;
  else if (has("<|tool_call|>"))
    format.calls = CallFormat::granite;
  else if (has("<tool_call>") || has("tool_call>"))
    format.calls = CallFormat::hermes;
  format.thinks = has("<think>") || has("</think>");
  return format;
}

bool ChatFormat::has_control_tokens() const {
  return calls != CallFormat::json && calls != CallFormat::hermes && calls != CallFormat::xml;
}

ForcedCall forced_call(const ChatFormat& format, std::span<const Tool> tools, bool parallel) {
  const std::string arguments = format.calls == CallFormat::json ? "parameters" : "arguments";
  Json choices = Json::array();
  for (const Tool& tool : tools) {
    Json parameters = Json::object();
    parameters["type"] = "object";
    if (!tool.parameters.empty()) parameters = Json::parse(tool.parameters);
    Json properties = Json::object();
    properties["name"] = Json::object();
    properties["name"]["const"] = tool.name;
    properties[arguments] = std::move(parameters);
    Json call = Json::object();
    call["type"] = "object";
    call["properties"] = std::move(properties);
    call["required"] = Json::array();
    call["required"].push_back("name");
    call["required"].push_back(arguments);
    call["additionalProperties"] = false;
    choices.push_back(std::move(call));
  }
  Json schema = Json::object();
  if (tools.size() == 1)
    schema = choices.items()[0];
  else
    schema["anyOf"] = std::move(choices);
  ForcedCall forced;
  const bool is_array = format.calls == CallFormat::mistral || format.calls == CallFormat::granite;
  if (is_array) {
    Json array = Json::object();
    array["type"] = "array";
    array["items"] = std::move(schema);
    array["minItems"] = 1;
    if (!parallel) array["maxItems"] = 1;
    schema = std::move(array);
  }
  forced.schema = schema.dump();
  // The other formats name the tool outside of the JSON: an object with the name is clear enough.
  if (format.calls == CallFormat::hermes) forced.opening = "<tool_call>\n";
  if (format.calls == CallFormat::mistral) forced.opening = "[TOOL_CALLS]";
  if (format.calls == CallFormat::granite) forced.opening = "<|tool_call|>";
  return forced;
}

}  // namespace prism::llm
