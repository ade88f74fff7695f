// A conversation as every API sends it: messages, tools, and how the answer may use them.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "prism/llm/chat_template.h"
#include "server/api/answer.h"

namespace prism::server {

struct ChatRequest {
  std::vector<llm::ChatMessage> messages;
  Json tools = Json::array();  // in OpenAI's format
  enum class ToolChoice : uint8_t { none, automatic, required };
  ToolChoice tool_choice = ToolChoice::automatic;
  std::string tool;  // with required: the only tool that may be called; empty: any
  bool parallel_calls = true;
  bool add_generation_prompt = true;
  std::string extra;               // JSON: further variables of the template
  std::string field = "messages";  // of the request, for errors
};

// Throws unless a tool's schema can be one of arguments, which are an object.
void check_parameters(const JsonView& schema);
// The name in a choice of a tool, inside "function" or beside "type". Throws if no tool has it.
std::string known_tool(const JsonView& choice, const Json& tools);
// Checks tools in OpenAI's format.
Json read_tools(const JsonView& tools);
// Reads "none", "auto", "required", {"type": "function", "function": {"name": ...}}, the same with
// the name outside, or {"type": "allowed_tools", ...}, which leaves only some of the tools.
void read_tool_choice(const JsonView& choice, ChatRequest& chat);
// Reads chat_template_kwargs and the effort of reasoning: further variables of the template.
void read_template_variables(const JsonView& variables, const JsonView& effort, ChatRequest& chat);

// The prompt that a conversation becomes. A last message of the assistant is the beginning of the
// answer, which the model continues.
std::string chat_text(const ChatRequest& chat, const ServedModel& model);
// Sets the prompt and the parser of the answer, and with a required tool its grammar.
void prepare_chat(const ChatRequest& chat, AnswerRequest& request);

// The arguments of a tool call as a value; an empty object for a call that was cut off.
Json arguments_json(const std::string& text);

}  // namespace prism::server
