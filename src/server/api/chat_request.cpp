// Renders conversations to prompts, and holds answers to tool calls where they are required.
#include "server/api/chat_request.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "llm/chat_format/answer_grammar.h"
#include "llm/chat_format/tool_messages.h"

namespace prism::server {
namespace {

using ToolChoice = ChatRequest::ToolChoice;

std::vector<llm::Tool> tools_of(const ChatRequest& chat) {
  std::vector<llm::Tool> tools;
  if (chat.tool_choice == ToolChoice::none) return tools;
  for (const Json& each : chat.tools.items()) {
    const JsonView function = JsonView(each)["function"];
    tools.push_back({function["name"].string(),
                     function["parameters"] ? function["parameters"].json().dump() : ""});
  }
  return tools;
}

// {"mode": "auto", "tools": [...]}, in chats inside "allowed_tools".
void read_allowed_tools(const JsonView& choice, ChatRequest& chat) {
  const JsonView allowed = choice["allowed_tools"] ? choice["allowed_tools"] : choice;
  std::vector<std::string> names;
  for (const JsonView& each : allowed["tools"].items())
    names.push_back(known_tool(each, chat.tools));
  if (names.empty()) allowed["tools"].fail("is empty; it must name tools");
  Json left = Json::array();
  for (const Json& each : chat.tools.items())
    if (std::ranges::count(names, JsonView(each)["function"]["name"].string()))
      left.push_back(each);
  chat.tools = std::move(left);
  read_tool_choice(allowed["mode"], chat);
}

}  // namespace

void check_parameters(const JsonView& schema) {
  if (!schema.is_object()) schema.fail("must be a JSON schema");
  if (const JsonView type = schema["type"]; type.is_string() && type.string() != "object")
    type.fail(fmt::format("is \"{}\"; the arguments of a tool are an object", type.string()));
}

std::string known_tool(const JsonView& choice, const Json& tools) {
  const JsonView name = choice["function"] ? choice["function"]["name"] : choice["name"];
  for (const Json& each : tools.items())
    if (JsonView(each)["function"]["name"].string() == name.string()) return name.string();
  name.fail(fmt::format("is \"{}\", which is not in tools", name.string()));
}

Json read_tools(const JsonView& tools) {
  Json result = Json::array();
  for (const JsonView& each : tools.items()) {
    if (const std::string type = each["type"].string_or("function"); type != "function")
      each["type"].fail(fmt::format("is \"{}\"; this server knows tools of type function", type));
    if (each["function"]["name"].string().empty()) each["function"]["name"].fail("is empty");
    if (const JsonView parameters = each["function"]["parameters"]) check_parameters(parameters);
    result.push_back(each.json());
  }
  return result;
}

void read_tool_choice(const JsonView& choice, ChatRequest& chat) {
  if (!choice) return;
  if (choice.is_object()) {
    const std::string type = choice["type"].string_or("function");
    if (type == "allowed_tools") return read_allowed_tools(choice, chat);
    if (type != "function")
      choice["type"].fail(fmt::format("is \"{}\"; it must be function or allowed_tools", type));
    chat.tool_choice = ToolChoice::required;
    chat.tool = known_tool(choice, chat.tools);
    return;
  }
  if (!choice.is_string()) choice.fail("must be none, auto, required or a function");
  const std::string& text = choice.string();
  if (text == "none")
    chat.tool_choice = ToolChoice::none;
  else if (text == "required")
    chat.tool_choice = ToolChoice::required;
  else if (text != "auto")
    choice.fail(fmt::format("is \"{}\"; it must be none, auto, required or a function", text));
  if (chat.tool_choice == ToolChoice::required && chat.tools.items().empty())
    choice.fail("is required, but there are no tools");
}

void read_template_variables(const JsonView& variables, const JsonView& effort, ChatRequest& chat) {
  Json all = Json::object();
  if (effort) {
    all["reasoning_effort"] = effort.string();
    if (effort.string() == "none") all["enable_thinking"] = false;
  }
  for (const auto& [name, value] : variables.members()) all[name] = value.json();
  if (!all.members().empty()) chat.extra = all.dump();
}

Json arguments_json(const std::string& text) {
  try {
    return text.empty() ? Json::object() : Json::parse(text);
  } catch (const Error&) {
    return Json::object();
  }
}

static std::string render(const ChatRequest& chat, const ServedModel& model) {
  llm::ChatOptions options;
  if (chat.tool_choice != ToolChoice::none && !chat.tools.items().empty())
    options.tools = chat.tools.dump();
  options.extra = chat.extra;
  std::span<const llm::ChatMessage> messages = chat.messages;
  std::string begun;
  if (messages.back().role == "assistant" && messages.back().tool_calls.empty() &&
      messages.size() > 1) {
    if (messages[messages.size() - 2].role == "assistant")
      throw ApiError(400, "the last two messages are both of the assistant; it can continue one",
                     chat.field);
    begun = messages.back().content;
    messages = messages.first(messages.size() - 1);
  }
  options.add_generation_prompt = chat.add_generation_prompt || !begun.empty();
  const llm::ChatFormat format = llm::ChatFormat::of(model.chat_template());
  return model.chat_prompt(llm::fit_tool_messages(format, messages), options) + begun;
}

std::string chat_text(const ChatRequest& chat, const ServedModel& model) {
  try {
    return render(chat, model);
  } catch (const Error& error) {  // the template refuses the messages
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    throw ApiError(400, fmt::format("{} cannot be used: {}", chat.field, error.what()), chat.field);
  }
}

void prepare_chat(const ChatRequest& chat, AnswerRequest& request) {
  const ServedModel& model = *request.model;
  std::vector<llm::Tool> tools = tools_of(chat);
  std::string prompt = chat_text(chat, model);

  const llm::ChatFormat format = llm::ChatFormat::of(model.chat_template());
  llm::MessageParserOptions parsing;
  // Marks that are control tokens have to be seen.
  const bool is_required = chat.tool_choice == ToolChoice::required;
  if (!is_required && format.has_control_tokens() && (!tools.empty() || format.thinks))
    request.options.show_special = true;
  const size_t end = prompt.find_last_not_of(" \n");
  parsing.begins_thinking =
      end != prompt.npos && std::string_view(prompt).substr(0, end + 1).ends_with("<think>");
  const auto in_tools = [](const auto& make) {
    try {
      return make();
    } catch (const Error& error) {
      throw ApiError(400, fmt::format("tools cannot be used: {}", error.what()), "tools");
    }
  };
  if (is_required) {
    if (!chat.tool.empty())
      std::erase_if(tools, [&](const llm::Tool& each) { return each.name != chat.tool; });
    if (request.options.grammar)
      throw ApiError(400, "response_format and a required tool are both given; leave one out",
                     "tool_choice");
    const llm::ForcedCall forced = llm::forced_call(format, tools, chat.parallel_calls);
    if (std::exchange(parsing.begins_thinking, false)) prompt += "\n</think>\n\n";
    prompt += forced.opening;
    request.options.grammar =
        in_tools([&] { return llm::Grammar::from_json_schema(forced.schema); });
    request.options.sampler.dry.multiplier = 0;
    parsing.is_call = true;
  } else if (std::optional<llm::Grammar>& content = request.options.grammar) {
    content = in_tools([&] {
      return llm::answer_grammar(format, *content,
                                 {.begins_thinking = parsing.begins_thinking, .tools = tools});
    });
  }
  parsing.is_single_call = !chat.parallel_calls;
  parsing.tools = std::move(tools);
  request.parser = [format, parsing] { return llm::MessageParser(format, parsing); };
  request.prompts = {model.tokenizer().encode(prompt)};
  request.text_field = chat.field;
}

}  // namespace prism::server
