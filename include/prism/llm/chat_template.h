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

namespace prism::llm {

struct ChatMessage {
  std::string role;  // system, user, assistant, tool
  std::string content;
  // Optional, empty: absent.
  std::string reasoning_content = {};  // what an assistant thought before it answered
  std::string tool_calls = {};    // JSON: [{"type": "function", "function": {"name": ..., ...}}]
  std::string tool_call_id = {};  // of the call that a tool's message answers
  std::string name = {};          // of the tool
  std::string parts = {};         // JSON that stands for content: [{"type": "text", ...}]
};

// A template is foreign code: it may loop and grow, and is stopped where it does.
struct TemplateLimits {
  uint64_t work = uint64_t{1} << 28;  // steps and bytes made, together: a second at most
  int depth = 400;                    // of calls and expressions within each other
  size_t output_bytes = size_t{1} << 25;
};

struct ChatOptions {
  bool add_generation_prompt = true;  // end with what opens the assistant's answer
  std::string bos_token = {}, eos_token = {};
  std::string tools = {};           // JSON: an array of tools; empty: none
  std::string extra = {};           // JSON: an object with further variables
  std::optional<std::tm> now = {};  // for templates that write the date; none: local time
  TemplateLimits limits = {};
};

// A parsed template; copies share it, and several threads may use one.
class ChatTemplate {
 public:
  // Throws kInvalidArgument with the line for text that is no template.
  explicit ChatTemplate(std::string_view text);
  // Throws kInvalidArgument with the line where it fails, where it refuses the messages with its
  // own words (raise_exception), and where it exceeds a limit.
  std::string render(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  // With these variables alone, a JSON object.
  std::string render_json(std::string_view variables, const ChatOptions& options = {}) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

std::string render_chat(std::string_view template_text, std::span<const ChatMessage> messages,
                        const ChatOptions& options = {});

}  // namespace prism::llm
