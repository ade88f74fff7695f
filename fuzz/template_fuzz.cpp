// Fuzzes the chat template engine: a template renders, is rejected, or stops at a limit.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "prism/error.h"
#include "prism/llm/chat_template.h"

using namespace prism;
using namespace prism::llm;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<ChatMessage> messages = {
      {.role = "system", .content = "Be kind.\n"},
      {.role = "user", .content = "Hi <b> ü"},
      {.role = "assistant",
       .content = "",
       .tool_calls =
           R"([{"id": "1", "function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}])"},
      {.role = "tool", .content = "5", .tool_call_id = "1"}};
  ChatOptions options;
  options.bos_token = "<s>";
  options.tools =
      R"([{"type": "function", "function": {"name": "f", "parameters": {"items": {}}}}])";
  options.limits = {.work = 1 << 17, .depth = 200, .output_bytes = 1 << 16};
  try {
    render_chat({reinterpret_cast<const char*>(data), size}, messages, options);
  } catch (const Error&) {
  }
  return 0;
}
