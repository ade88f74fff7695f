// Recognises the formats of chat templates and writes the schema of a forced call.
#include "llm/chat_format/chat_format.h"

#include "base/json.h"

namespace prism::llm {
namespace {

// The schema with its references moved from its own root to `place` in another document.
Json with_references_at(const Json& schema, const std::string& place) {
  if (schema.is_array()) {
    Json result = Json::array();
    for (const Json& each : schema.items()) result.push_back(with_references_at(each, place));
    return result;
  }
  if (!schema.is_object()) return schema;
  Json result = Json::object();
  for (const auto& [key, value] : schema.members()) {
    if (key == "const" || key == "enum")
      result[key] = value;  // values, not schemas
    else if (key == "$ref" && value.is_string() && JsonView(value).string().starts_with("#"))
      result[key] = "#" + place + JsonView(value).string().substr(1);
    else
      result[key] = with_references_at(value, place);
  }
  return result;
}

// The schema of a call's arguments, which are an object. A tool without parameters takes none.
Json arguments_schema(const Tool& tool, const std::string& place) {
  Json schema = Json::object();
  if (tool.parameters.empty()) {
    schema["type"] = "object";
    schema["additionalProperties"] = false;
    return schema;
  }
  schema = Json::parse(tool.parameters);
  bool says_what = false;
  for (const char* key : {"type", "$ref", "anyOf", "oneOf", "allOf", "const", "enum"})
    says_what |= schema.find(key) != nullptr;
  if (!says_what) schema["type"] = "object";
  return with_references_at(schema, place);
}

}  // namespace

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
  format.thinks = has("<think>") || has("</think>") || format.calls == CallFormat::harmony;
  format.shows_calls = has("tool_calls");
  format.has_single_calls = has("tool_calls[0]");
  if (format.calls == CallFormat::mistral) format.call_id_length = 9;
  if (has("'tool_response'") && !has("'tool'")) format.result_role = "tool_response";
  return format;
}

bool ChatFormat::has_control_tokens() const {
  return calls != CallFormat::json && calls != CallFormat::hermes && calls != CallFormat::xml;
}

ForcedCall forced_call(const ChatFormat& format, std::span<const Tool> tools, bool parallel) {
  const std::string arguments = format.calls == CallFormat::json ? "parameters" : "arguments";
  Json choices = Json::array();
  Json definitions = Json::object();  // at the root, because references begin there
  for (const Tool& tool : tools) {
    const std::string number = std::to_string(choices.items().size());
    const std::string place = "/$defs/" + number;
    definitions[number] = arguments_schema(tool, place);
    Json properties = Json::object();
    properties["name"] = Json::object();
    properties["name"]["const"] = tool.name;
    properties[arguments] = Json::object();
    properties[arguments]["$ref"] = "#" + place;
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
  schema["$defs"] = std::move(definitions);
  forced.schema = schema.dump();
  // The other formats name the tool outside of the JSON: an object with the name is clear enough.
  if (format.calls == CallFormat::hermes) forced.opening = "<tool_call>\n";
  if (format.calls == CallFormat::mistral) forced.opening = "[TOOL_CALLS]";
  if (format.calls == CallFormat::granite) forced.opening = "<|tool_call|>";
  return forced;
}

}  // namespace prism::llm
