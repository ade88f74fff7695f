// Chat templates: the small Jinja programs in model files that turn messages into a prompt.
//
//   const std::vector<ChatMessage> messages = {{.role = "user", .content = "Hi"}};
//   const std::string prompt = render_chat(template_text, messages, {.bos_token = "<s>"});
#pragma once

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace prism::llm {

struct ChatMessage {
  std::string role;  // system, user, assistant, tool
  std::string content;
  // Optional; empty means absent.
  std::string reasoning_content = {};  // the assistant's reasoning before its answer
  std::string tool_calls = {};    // JSON: [{"type": "function", "function": {"name": ..., ...}}]
  std::string tool_call_id = {};  // the call that a tool message answers
  std::string name = {};          // name of the tool
  std::string parts = {};         // JSON instead of content: [{"type": "text", ...}]
};

// Limits for a template, which is untrusted code.
struct TemplateLimits {
  // Steps, and bytes that are created or compared, for parsing and for each rendering: a second at
  // most. It bounds the memory, too.
  uint64_t work = uint64_t{1} << 28;
  int depth = 400;  // nesting of calls and expressions
  size_t output_bytes = size_t{1} << 25;
};

struct ChatOptions {
  bool add_generation_prompt = true;  // end with the opening of the assistant's answer
  std::string bos_token = {}, eos_token = {};
  std::string tools = {};           // JSON: an array of tools; empty: none
  std::string extra = {};           // JSON: an object with further variables
  std::optional<std::tm> now = {};  // for templates that print the date; none: local time
  TemplateLimits limits = {};
};

// A parsed template. Copies share it. Thread-safe.
class ChatTemplate {
 public:
  // Throws kInvalidArgument with the line if the text is not a valid template, or if parsing it
  // exceeds limits.work.
  explicit ChatTemplate(std::string_view text, const TemplateLimits& limits = {});
  // Throws kInvalidArgument with the line if the template fails, rejects the messages
  // (raise_exception) or exceeds a limit.
  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  // Renders with only these variables, a JSON object.
  std::string render_json(std::string_view variables, const ChatOptions& options = {}) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

std::string render_chat(std::string_view template_text, std::span<const ChatMessage> messages,
                        const ChatOptions& options = {});

}  // namespace prism::llm

#pragma GCC visibility pop
