// Tests what calls and results become for templates that demand short ids, show single calls or
// show none.
#include "llm/chat_format/tool_messages.h"

#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "base/json.h"

namespace prism::llm {
namespace {

std::string call(const std::string& name, const std::string& id) {
  return fmt::format(
      R"({{"type":"function","id":"{}","function":{{"name":"{}","arguments":{{"a":1}}}}}})", id,
      name);
}

ChatMessage calls(const std::string& list) {
  return {.role = "assistant", .content = "", .tool_calls = "[" + list + "]"};
}
ChatMessage result(const std::string& text, const std::string& id, const std::string& name = "") {
  return {.role = "tool", .content = text, .tool_call_id = id, .name = name};
}

// The ids of all calls and results.
std::vector<std::string> ids(const std::vector<ChatMessage>& messages) {
  std::vector<std::string> all;
  for (const ChatMessage& each : messages) {
    const Json list = Json::parse(each.tool_calls.empty() ? "[]" : each.tool_calls);
    for (const Json& one : list.items()) all.push_back(JsonView(one)["id"].string());
    if (each.role == "tool") all.push_back(each.tool_call_id);
  }
  return all;
}

std::vector<std::string> fitted_ids(size_t length, const std::vector<ChatMessage>& messages) {
  return ids(fit_tool_messages({.call_id_length = length}, messages));
}

using Ids = std::vector<std::string>;

TEST(ToolMessages, PairResultsWithCalls) {
  EXPECT_EQ(fitted_ids(0, {calls(call("f", "x") + "," + call("g", "y")), result("1", "y"),
                           result("2", "x")}),
            (Ids{"x", "y", "y", "x"}));
  // By order, and by name where there is one.
  EXPECT_EQ(fitted_ids(0, {calls(call("f", "x") + "," + call("g", "y")), result("1", ""),
                           result("2", "")}),
            (Ids{"x", "y", "x", "y"}));
  EXPECT_EQ(fitted_ids(0, {calls(call("f", "") + "," + call("g", "")), result("1", "", "g"),
                           result("2", "", "f")}),
            (Ids{"call_2", "call_1", "call_1", "call_2"}));
  // From results to calls without an id, and new ones that nothing has yet.
  EXPECT_EQ(fitted_ids(0, {calls(call("f", "")), result("1", "call_1"), calls(call("f", "")),
                           result("2", ""), calls(call("f", ""))}),
            (Ids{"call_1", "call_1", "call_2", "call_2", "call_3"}));
  EXPECT_EQ(fitted_ids(0, {result("1", "")}), (Ids{"call_1"}));
}

TEST(ToolMessages, ShortenIds) {
  const std::vector<ChatMessage> messages = {
      calls(call("f", "call_ABCDEFGHIJKLMNOPQRSTUVWX") + "," + call("g", "abc123DEF")),
      result("1", "call_ABCDEFGHIJKLMNOPQRSTUVWX"), result("2", "abc123DEF"), calls(call("f", "")),
      result("3", "")};
  const Ids all = fitted_ids(9, messages);
  EXPECT_EQ(all, fitted_ids(9, messages));
  EXPECT_EQ(all[0], all[2]);
  EXPECT_EQ(all[1], "abc123DEF");
  EXPECT_EQ(all[3], "abc123DEF");
  EXPECT_EQ(all[4], all[5]);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 3u);
  for (const std::string& each : all) {
    EXPECT_EQ(each.size(), 9u);
    for (const char c : each) EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c))) << each;
  }
  // An id that is what another one would become.
  const Ids clash =
      fitted_ids(9, {calls(call("f", "call_ABCDEFGHIJKLMNOPQRSTUVWX")), calls(call("g", all[0]))});
  EXPECT_EQ(clash[1], all[0]);
  EXPECT_NE(clash[0], all[0]);
  EXPECT_EQ(clash[0].size(), 9u);
}

TEST(ToolMessages, SplitCallsForTemplatesWithSingleOnes) {
  const std::vector<ChatMessage> split =
      fit_tool_messages({.has_single_calls = true},
                        std::vector<ChatMessage>{calls(call("f", "x") + "," + call("g", "y")),
                                                 result("2", "y"),
                                                 result("1", "x"),
                                                 result("3", "z"),
                                                 {.role = "user", .content = "Thanks"}});
  EXPECT_EQ(ids(split), (Ids{"x", "x", "y", "y", "z"}));
  ASSERT_EQ(split.size(), 6u);
  EXPECT_EQ(split[1].content, "1");
  EXPECT_EQ(split[5].content, "Thanks");
}

TEST(ToolMessages, CallsBecomeContent) {
  const auto content = [](CallFormat format) {
    ChatMessage given = calls(call("f", "x") + "," + call("g", "y"));
    given.content = "Well.";
    const ChatMessage message =
        fit_tool_messages({.calls = format, .shows_calls = false}, std::vector{given})[0];
    EXPECT_EQ(message.tool_calls, "");
    return message.content;
  };
  EXPECT_EQ(content(CallFormat::hermes),
            "Well.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>\n"
            "<tool_call>\n{\"name\": \"g\", \"arguments\": {\"a\":1}}\n</tool_call>");
  EXPECT_EQ(content(CallFormat::granite),
            "Well.\n<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\":1}}, "
            "{\"name\": \"g\", \"arguments\": {\"a\":1}}]");
  EXPECT_EQ(content(CallFormat::json),
            "Well.\n{\"name\": \"f\", \"parameters\": {\"a\":1}}\n"
            "{\"name\": \"g\", \"parameters\": {\"a\":1}}");
  const std::vector<ChatMessage> renamed = fit_tool_messages(
      {.result_role = "tool_response"}, std::vector<ChatMessage>{result("1", "x")});
  EXPECT_EQ(renamed[0].role, "tool_response");
}

}  // namespace
}  // namespace prism::llm
