// Tests the split of answers into content, reasoning and tool calls in every format, however the
// text is cut into pieces.
#include "llm/chat_format/message_parser.h"

#include <gtest/gtest.h>

#include "prism/llm/grammar.h"

namespace prism::llm {
namespace {

// The parts of a text in one line, the same for every cut of the text.
std::string read(CallFormat calls, std::string_view text, MessageParserOptions options,
                 size_t piece) {
  MessageParser parser({.calls = calls, .thinks = true}, std::move(options));
  MessageParts parts;
  const auto add = [&](const MessageParts& more) {
    for (const MessagePart& part : more) add_part(parts, part.kind, part.text);
  };
  for (size_t at = 0; at < text.size(); at += piece) add(parser.feed(text.substr(at, piece)));
  add(parser.finish());
  std::string line;
  for (const MessagePart& part : parts) {
    const char* const names[] = {"content", "thought", "call", "arguments"};
    line += std::string(line.empty() ? "" : " | ") + names[static_cast<int>(part.kind)] + ":" +
            part.text;
  }
  return line;
}

void expect(CallFormat calls, std::string_view text, const std::string& wanted,
            MessageParserOptions options = {.tools = {{"f", ""}, {"g", ""}}}) {
  for (const size_t piece : {1, 2, 3, 7, 1000})
    EXPECT_EQ(read(calls, text, options, piece), wanted) << text << " by " << piece;
}

TEST(MessageParser, SplitsReasoning) {
  expect(CallFormat::hermes, "<think>\nLet me see.\n</think>\n\nFour.",
         "thought:Let me see. | content:Four.");
  expect(CallFormat::hermes, "No thought. <think>", "content:No thought. <think>");
  expect(CallFormat::hermes, "<thin", "content:<thin");
  expect(CallFormat::hermes, "A </think> B", "thought:A | content:B", {.begins_thinking = true});
  expect(CallFormat::hermes, "<think>\n\n</think>\n\nHi", "content:Hi");
  expect(CallFormat::hermes, "<think>A</think>B", "content:<think>A</think>B",
         {.splits_reasoning = false});
  expect(CallFormat::hermes, "<think>cut of", "thought:cut of");
}

TEST(MessageParser, PlainTextIsUnchanged) {
  for (const CallFormat calls : {CallFormat::json, CallFormat::hermes, CallFormat::xml,
                                 CallFormat::mistral, CallFormat::granite, CallFormat::deepseek}) {
    expect(calls, " One <b>two</b>\n\n three \n", "content: One <b>two</b>\n\n three \n");
    expect(calls, " One [TOOL <tool {\"name\"} \n", "content: One [TOOL <tool {\"name\"} \n", {});
  }
  expect(CallFormat::hermes, "<tool_call>{\"name\": \"f\"}</tool_call>",
         "content:<tool_call>{\"name\": \"f\"}</tool_call>", {});
}

TEST(MessageParser, ReadsHermes) {
  expect(CallFormat::hermes,
         "I look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}\\\"\"]}}\n"
         "</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
         "content:I look. | call:f | arguments:{\"a\": [1, \"}\\\"\"]} | call:g | arguments:{}");
  expect(CallFormat::hermes,
         "<think>Hm</think><tool_call>{\"arguments\": {\"x\": 1}, \"name\": \"f\"}</tool_call>Done",
         "thought:Hm | call:f | arguments:{\"x\": 1} | content:Done");
  expect(CallFormat::hermes, "<tool_call>{\"name\": \"f\"}</tool_call>", "call:f | arguments:{}");
  expect(CallFormat::hermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\":1}\"}",
         "call:f | arguments:{\"a\":1}");
  expect(CallFormat::hermes, "<tool_call>nonsense", "content:<tool_call>nonsense");
  expect(CallFormat::hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"cut",
         "call:f | arguments:{\"a\": \"cut");
}

TEST(MessageParser, ReadsLlama) {
  expect(CallFormat::json, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}",
         "call:f | arguments:{\"a\": 1}");
  expect(CallFormat::json,
         "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", "
         "\"parameters\": {}}",
         "call:f | arguments:{}");
  expect(CallFormat::json, "{\"answer\": {\"name\": 1}}", "content:{\"answer\": {\"name\": 1}}");
  expect(CallFormat::json, "See {\"name\": \"f\"}", "content:See {\"name\": \"f\"}");
}

TEST(MessageParser, ObjectsThatCallNoToolAreContent) {
  expect(CallFormat::json, "{\"name\": \"Ann\", \"age\": 3}",
         "content:{\"name\": \"Ann\", \"age\": 3}");
  expect(CallFormat::json, "<tool_call>{\"name\": \"f\"}</tool_call>", "call:f | arguments:{}");
}

TEST(MessageParser, ReadsMistralAndGranite) {
  const std::string calls =
      "[{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"123456789\"}, {\"name\": \"g\", "
      "\"arguments\": {}}]";
  const std::string wanted = "call:f | arguments:{\"a\": 1} | call:g | arguments:{}";
  expect(CallFormat::mistral, "[TOOL_CALLS]" + calls, wanted);
  expect(CallFormat::mistral, "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}", wanted);
  expect(CallFormat::granite, "<|tool_call|>" + calls, wanted);
  expect(CallFormat::mistral, "[TOOL_CALLS]", "content:[TOOL_CALLS]");
}

TEST(MessageParser, ReadsXml) {
  expect(CallFormat::xml,
         "Well.\n<tool_call>\n<function=f>\n<parameter=n>\n3\n</parameter>\n<parameter=s>\n4\n"
         "</parameter>\n<parameter=t>\na\nb\n</parameter>\n</function>\n</tool_call>",
         "content:Well. | call:f | arguments:{\"n\":3,\"s\":\"4\",\"t\":\"a\\nb\"}",
         {.tools = {{"f", R"({"properties": {"s": {"type": "string"}}})"}}});
}

TEST(MessageParser, ReadsDeepseek) {
  expect(CallFormat::deepseek,
         "<think>A</think>\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
         "```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}"
         "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
         "thought:A | call:f | arguments:{\"a\": 1} | call:g | arguments:{}");
}

TEST(MessageParser, ReadsHarmony) {
  expect(CallFormat::harmony,
         "<|channel|>analysis<|message|>Hm <|end|><|start|>assistant<|channel|>final<|message|>Four"
         "<|return|>",
         "thought:Hm | content:Four");
  expect(CallFormat::harmony,
         "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary "
         "to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
         "thought:Hm | call:f | arguments:{\"a\": 1}");
  expect(CallFormat::harmony, " to=functions.f<|channel|>commentary json<|message|>{}",
         "call:f | arguments:{}");
  expect(CallFormat::harmony, "Plain", "content:Plain");
}

TEST(MessageParser, SingleCallsEndTheMessage) {
  const std::string object = R"({"name": "f", "arguments": {"a": 1}})";
  const std::string deepseek =
      "<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>";
  const std::string xml =
      "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\n";
  const std::string harmony = "<|channel|>commentary to=functions.f<|message|>{\"a\": 1}<|call|>";
  const std::pair<CallFormat, std::string> rows[] = {
      {CallFormat::json, object + "\n" + object},
      {CallFormat::hermes, "<tool_call>" + object + "</tool_call><tool_call>" + object},
      {CallFormat::xml, xml + xml},
      {CallFormat::mistral, "[TOOL_CALLS][" + object + ", " + object + "]"},
      {CallFormat::mistral, R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{})"},
      {CallFormat::granite, "<|tool_call|>[" + object + ", " + object + "] and more"},
      {CallFormat::deepseek, deepseek + "\n" + deepseek},
      {CallFormat::harmony, harmony + "<|start|>assistant" + harmony},
  };
  for (const auto& [calls, text] : rows) {
    const MessageParserOptions options = {.tools = {{"f", ""}}, .is_single_call = true};
    expect(
        calls, text,
        calls == CallFormat::xml ? "call:f | arguments:{\"a\":1}" : "call:f | arguments:{\"a\": 1}",
        options);
    MessageParser parser({.calls = calls}, options);
    parser.feed(text);
    EXPECT_TRUE(parser.is_done()) << text;
    MessageParser words({.calls = calls}, options);
    words.feed("There is no call.");
    words.finish();
    EXPECT_FALSE(words.is_done()) << text;
  }
}

TEST(MessageParser, ReadsForcedCalls) {
  for (const CallFormat calls : {CallFormat::json, CallFormat::hermes, CallFormat::xml,
                                 CallFormat::deepseek, CallFormat::harmony})
    expect(calls, "{\"name\": \"f\", \"arguments\": {\"a\": 1}}", "call:f | arguments:{\"a\": 1}",
           {.tools = {{"f", ""}}, .is_call = true});
  expect(CallFormat::mistral, "[{\"name\": \"f\", \"arguments\": {}}]", "call:f | arguments:{}",
         {.tools = {{"f", ""}}, .is_call = true});
}

TEST(ChatFormat, ForcedCallsNameTheTools) {
  const std::vector<Tool> tools = {{"f", R"({"type":"object","properties":{"a":{}}})"}, {"g", ""}};
  const ForcedCall hermes = forced_call({.calls = CallFormat::hermes}, tools, true);
  EXPECT_EQ(hermes.opening, "<tool_call>\n");
  EXPECT_EQ(
      hermes.schema,
      R"({"anyOf":[{"type":"object","properties":{"name":{"const":"f"},"arguments":)"
      R"({"$ref":"#/$defs/0"}},"required":["name","arguments"],)"
      R"("additionalProperties":false},{"type":"object","properties":{"name":)"
      R"({"const":"g"},"arguments":{"$ref":"#/$defs/1"}},"required":["name","arguments"],)"
      R"("additionalProperties":false}],"$defs":{"0":{"type":"object","properties":{"a":{}}},)"
      R"("1":{"type":"object","additionalProperties":false}}})");
  const ForcedCall mistral =
      forced_call({.calls = CallFormat::mistral}, std::span(tools).first(1), false);
  EXPECT_NE(mistral.schema.find(R"(,"minItems":1,"maxItems":1,)"), std::string::npos);
}

// Whether a call of f with these arguments follows the schema of a forced call.
bool allows(const std::string& parameters, const std::string& arguments) {
  const std::vector<Tool> tools = {{"f", parameters}, {"g", ""}};
  bool is_allowed = true;
  for (const CallFormat calls : {CallFormat::hermes, CallFormat::json, CallFormat::mistral}) {
    const Grammar grammar =
        Grammar::from_json_schema(forced_call({.calls = calls}, tools, true).schema);
    std::string text = calls == CallFormat::json ? R"({"name": "f", "parameters": )"
                                                 : R"({"name": "f", "arguments": )";
    text += arguments + "}";
    if (calls == CallFormat::mistral) text = "[" + text + "]";
    is_allowed &= grammar.matches(text);
  }
  return is_allowed;
}

TEST(ChatFormat, ForcedCallsKeepTheReferencesOfTheirTools) {
  const std::string nested =
      R"({"$defs":{"Kind":{"enum":["alpha","#"]},"Leaf":{"type":"object","properties":{"k":)"
      R"({"$ref":"#/$defs/Kind"}},"required":["k"]}},"type":"object","properties":{"leaf":)"
      R"({"$ref":"#/$defs/Leaf"}},"required":["leaf"]})";
  EXPECT_TRUE(allows(nested, R"({"leaf": {"k": "alpha"}})"));
  EXPECT_TRUE(allows(nested, R"({"leaf": {"k": "#"}})"));
  EXPECT_FALSE(allows(nested, R"({"leaf": {"k": "beta"}})"));
  const std::string itself = R"({"type":"object","properties":{"next":{"$ref":"#"}}})";
  EXPECT_TRUE(allows(itself, R"({"next": {"next": {}}})"));
  EXPECT_FALSE(allows(itself, R"({"next": 1})"));
}

TEST(ChatFormat, ArgumentsOfForcedCallsAreObjects) {
  EXPECT_TRUE(allows("{}", R"({"a": 1})"));
  EXPECT_FALSE(allows("{}", "1"));
  EXPECT_TRUE(allows(R"({"properties":{"a":{"type":"integer"}}})", R"({"a": 1})"));
  EXPECT_TRUE(allows("", "{}"));
  EXPECT_FALSE(allows("", R"({"a": 1})"));
}

}  // namespace
}  // namespace prism::llm
