// How a model writes its reasoning and tool calls, as far as its chat template shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prism::llm {

struct Tool {
  std::string name;
  std::string parameters;  // a JSON schema; empty: none
};

enum class CallFormat : uint8_t {
  json,      // {"name": ..., "parameters": {...}} is the whole answer: Llama 3
  hermes,    // <tool_call>{"name": ..., "arguments": {...}}</tool_call>: Qwen, SmolLM3, Granite 4
  xml,       // <tool_call><function=NAME><parameter=KEY>VALUE...: Qwen3-Coder
  mistral,   // [TOOL_CALLS][{"name": ..., "arguments": {...}}]
  granite,   // <|tool_call|>[{"name": ..., "arguments": {...}}]
  deepseek,  // <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME ```json {...} ```
  harmony,   // <|channel|>commentary to=functions.NAME <|message|>{...}<|call|>: gpt-oss
};

struct ChatFormat {
  CallFormat calls = CallFormat::json;
  bool thinks = false;  // may begin with <think>...</think>, or harmony's analysis

  // What the template makes of the calls and results of a conversation.
  bool shows_calls = true;           // messages have tool_calls; otherwise they are content
  bool has_single_calls = false;     // a message has one call at most
  size_t call_id_length = 0;         // ids must have so many letters and digits; 0: anything
  std::string result_role = "tool";  // of messages with results

  static ChatFormat of(std::string_view template_text);
  // Whether marks of the format are control tokens, which have to be shown (show_special) for a
  // MessageParser to see them.
  bool has_control_tokens() const;
};

// Holds an answer to a call of one of the tools: `opening` is appended to the prompt, and the
// answer matches `schema`, a JSON schema. A MessageParser reads such an answer with is_call.
struct ForcedCall {
  std::string opening;
  std::string schema;
};
ForcedCall forced_call(const ChatFormat& format, std::span<const Tool> tools, bool parallel);

}  // namespace prism::llm
