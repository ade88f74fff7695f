// Fuzzes the chat template engine with valid templates: the bytes choose productions of a grammar.
// Each template renders, fails with an Error, or stops at a limit; none takes long.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include "prism/error.h"
#include "prism/llm/chat_template.h"
#include "support/template_grammar.h"

using namespace prism;
using namespace prism::llm;

namespace {

// Seconds of processor time for 16,384 steps and bytes, under sanitizers. The attack on templates
// has larger limits.
constexpr double kLongest = 0.25;
constexpr size_t kMostChoices = 300;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<ChatMessage> messages = {
      {.role = "user", .content = "Hi <b> ü"},
      {.role = "assistant",
       .content = "",
       .tool_calls = R"([{"function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}])"}};
  ChatOptions options;
  options.tools = R"([{"type": "function", "function": {"name": "f"}}])";
  options.limits = {.work = 1 << 14, .depth = 200, .output_bytes = 1 << 14};
  const std::clock_t begin = std::clock();
  try {
    render_chat(test::TemplateGrammar({data, std::min(size, kMostChoices)}).text(), messages,
                options);
  } catch (const Error&) {
  }
  if (static_cast<double>(std::clock() - begin) > kLongest * CLOCKS_PER_SEC) std::abort();
  return 0;
}
