// Tests that grammars of answers allow thinking before the content, and calls instead of it.
#include "llm/chat_format/answer_grammar.h"

#include <gtest/gtest.h>

namespace prism::llm {
namespace {

const Grammar kContent = Grammar::parse("root ::= \"{\" number \"}\"\nnumber ::= [0-9]+");
const std::vector<Tool> kTools = {{"f", ""}};

TEST(AnswerGrammar, ContentFollowsThinking) {
  const Grammar plain = answer_grammar({.calls = CallFormat::hermes}, kContent, {});
  EXPECT_TRUE(plain.matches("{12}"));
  EXPECT_FALSE(plain.matches("Hm</think>{12}"));
  const Grammar thinking =
      answer_grammar({.calls = CallFormat::hermes}, kContent, {.begins_thinking = true});
  for (const char* thought :
       {"", "Hm.\nWhat is 3 < 4 <<? ", "</thin", "<</</t</think", "<think> ü"})
    for (const char* space : {"", "\n", "\n\n"})
      EXPECT_TRUE(thinking.matches(std::string(thought) + "</think>" + space + "{12}")) << thought;
  EXPECT_FALSE(thinking.matches("{12}"));
  EXPECT_FALSE(thinking.matches("Hm</think>Twelve"));
  EXPECT_FALSE(thinking.matches("Hm</think>"));
  EXPECT_FALSE(thinking.matches("Hm</think>No.</think>{12}"));
  EXPECT_FALSE(thinking.matches("Hm</think>{12}<tool_call>x"));
}

TEST(AnswerGrammar, CallsMayTakeThePlaceOfContent) {
  const std::pair<CallFormat, std::string> calls[] = {
      {CallFormat::json, R"({"name": "f", "parameters": {}})"},
      {CallFormat::hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"},
      {CallFormat::xml, "<tool_call>\n<function=f>\n</function>\n</tool_call>"},
      {CallFormat::mistral, R"([TOOL_CALLS][{"name": "f", "arguments": {}}])"},
      {CallFormat::granite, R"(<|tool_call|>[{"name": "f", "arguments": {}}])"},
      {CallFormat::deepseek, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{}"},
      {CallFormat::harmony, "<|channel|>commentary to=functions.f<|message|>{}<|call|>"},
      {CallFormat::harmony,
       "<|channel|>analysis<|message|>1 < 2<|end|><|start|>assistant to="
       "functions.f<|channel|>commentary json<|message|>{}"},
  };
  for (const auto& [format, text] : calls) {
    const std::string content =
        format == CallFormat::harmony ? "<|channel|>final<|message|>{12}" : "{12}";
    for (const bool has_tools : {false, true}) {
      const Grammar grammar = answer_grammar(
          {.calls = format}, kContent,
          {.tools = has_tools ? std::span<const Tool>(kTools) : std::span<const Tool>()});
      EXPECT_TRUE(grammar.matches(content));
      EXPECT_EQ(grammar.matches(text), has_tools) << text;
      EXPECT_FALSE(grammar.matches("Well. " + text));
    }
    if (format != CallFormat::harmony) {
      const Grammar thinking =
          answer_grammar({.calls = format}, kContent, {.begins_thinking = true, .tools = kTools});
      EXPECT_TRUE(thinking.matches("Hm</think>\n\n" + text)) << text;
    }
  }
}

TEST(AnswerGrammar, HarmonyThinksInItsChannel) {
  const Grammar grammar = answer_grammar({.calls = CallFormat::harmony}, kContent, {});
  EXPECT_TRUE(grammar.matches(
      "<|channel|>analysis<|message|>1 <|e < 2<|end|><|start|>assistant<|channel|>final<|message|>"
      "{12}"));
  EXPECT_FALSE(grammar.matches("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant{12}"));
  EXPECT_FALSE(grammar.matches("<|channel|>final<|message|>Twelve"));
}

}  // namespace
}  // namespace prism::llm
