// Writes the grammar of an answer: thinking, and then content or a call.
#include "llm/chat_format/answer_grammar.h"

#include <map>
#include <string>

#include <fmt/format.h>

namespace prism::llm {
namespace {

// Rules for any text up to a mark, and the mark: `name`, name-1, ... The first character of the
// mark must be in it once only. A text without the mark has pieces that begin with this character,
// and rule i matches the rest of a piece whose first i characters are those of the mark.
std::string rules_until(const std::string& name, std::string_view mark) {
  const char first = mark[0];
  std::string rules = fmt::format("{0} ::= [^{1}]* (\"{1}\" {0}-1)* \"{2}\"\n", name, first, mark);
  for (size_t i = 1; i < mark.size(); ++i) {
    rules += fmt::format("{}-{} ::= ([^{}{}] [^{}]*", name, i, mark[i], first, first);
    if (i + 1 < mark.size()) rules += fmt::format(" | \"{}\" {}-{}", mark[i], name, i + 1);
    rules += ")?\n";
  }
  return rules;
}

// Where a call begins. The rest of a call is not held to anything.
std::string_view call_mark(CallFormat calls) {
  switch (calls) {
    case CallFormat::mistral:
      return "[TOOL_CALLS]";
    case CallFormat::granite:
      return "<|tool_call|>";
    case CallFormat::deepseek:
      return "<｜tool▁calls▁begin｜>";
    default:
      return "<tool_call>";
  }
}

}  // namespace

Grammar answer_grammar(const ChatFormat& format, const Grammar& content,
                       const AnswerGrammarOptions& options) {
  std::map<std::string, Grammar> parts = {{"content", content}};
  const bool has_calls = !options.tools.empty();
  std::string text;
  if (format.calls == CallFormat::harmony) {
    text = R"(root ::= ("<|channel|>analysis<|message|>" analysis "<|start|>assistant")? answer
answer ::= "<|channel|>final<|message|>" content)";
    if (has_calls) text += R"( | ("<|channel|>commentary to=functions." | " to=functions.") .+)";
    text += "\n" + rules_until("analysis", "<|end|>");
    return Grammar::parse(text, "root", parts);
  }
  text = options.begins_thinking ? "root ::= thought [ \\n]{0,3} answer\n" : "root ::= answer\n";
  text += "answer ::= content";
  if (has_calls && format.calls == CallFormat::json) {
    text += " | call";
    parts.emplace("call",
                  Grammar::from_json_schema(forced_call(format, options.tools, false).schema));
  } else if (has_calls) {
    text += fmt::format(" | \"{}\" .+", call_mark(format.calls));
  }
  text += "\n";
  if (options.begins_thinking) text += rules_until("thought", "</think>");
  return Grammar::parse(text, "root", parts);
}

}  // namespace prism::llm
