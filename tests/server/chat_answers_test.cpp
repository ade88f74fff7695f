// Tests the parts of a chat's answer through every API, whole and streamed: reasoning, content that
// follows a schema, and calls that the model chooses.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_program.h"
#include "support/server/chat_clients.h"
#include "support/server/saying_model.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::ChatAnswer;
using test::ChatCall;
using test::ChatQuestion;
using test::RunningServer;

const json kSchema = {{"type", "object"},
                      {"properties", {{"celsius", {{"type", "integer"}}}}},
                      {"required", {"celsius"}}};
const std::string kStructured = R"({"celsius": 21})";

// A server whose model has the template of a file and says what a test wants.
class ChatAnswers : public testing::Test {
 protected:
  void serve(const std::string& name) {
    server_.emplace(test::saying_server(
        folder_.path(),
        test::read_file(test::source_dir() / "tests/data/templates" / (name + ".jinja")),
        sayings_));
  }
  // What clients of each API get when the model says the text.
  template <typename Check>
  void for_each_api(const ChatQuestion& question, const std::string& said, const Check& check) {
    sayings_->say({said});
    for (const std::string& path : test::kChatPaths)
      for (const bool is_streamed : {false, true}) {
        if (!question.schema.is_null() && path == "/v1/messages") continue;
        SCOPED_TRACE(path + (is_streamed ? ", streamed" : ""));
        check(test::ask(*server_, path, test::chat_request(path, question), is_streamed));
      }
  }

  const test::TemporaryFolder folder_;
  const std::shared_ptr<test::Sayings> sayings_ = std::make_shared<test::Sayings>();
  std::optional<RunningServer> server_;
};

// The model fails if the grammar of the request does not allow what it says.
TEST_F(ChatAnswers, SchemasHoldTheContentAfterThinking) {
  serve("deepseek-r1");  // its prompt ends with <think>, or with </think>
  for_each_api({.schema = kSchema}, "Is it <warm>?</think>\n\n" + kStructured,
               [](const ChatAnswer& answer) {
                 EXPECT_EQ(answer.content, kStructured);
                 EXPECT_EQ(answer.reasoning, "Is it <warm>?");
               });
  EXPECT_FALSE(sayings_->options().grammar->matches(kStructured));
  EXPECT_TRUE(sayings_->prompts().back().ends_with("<think>\n"));
  for_each_api({.thinks = false, .schema = kSchema}, kStructured, [](const ChatAnswer& answer) {
    EXPECT_EQ(answer.content, kStructured);
    EXPECT_EQ(answer.reasoning, "");
  });
  json request = test::chat_request("/v1/chat/completions", {});
  request["grammar"] = R"(root ::= "yes" | "no")";
  sayings_->say({"Hm</think>\nyes"});
  EXPECT_EQ(test::ask(*server_, "/v1/chat/completions", request, false).content, "yes");
  serve("qwen3");  // the model itself begins to think, or not
  for_each_api({.schema = kSchema}, kStructured,
               [](const ChatAnswer& answer) { EXPECT_EQ(answer.content, kStructured); });
}

TEST_F(ChatAnswers, SchemasOfHarmonyHoldItsFinalChannel) {
  serve("gpt-oss");
  for_each_api({.schema = kSchema},
               "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final"
               "<|message|>" +
                   kStructured,
               [](const ChatAnswer& answer) {
                 EXPECT_EQ(answer.content, kStructured);
                 EXPECT_EQ(answer.reasoning, "Hm");
               });
}

TEST_F(ChatAnswers, SchemasLeaveRoomForCalls) {
  const std::string arguments = R"({"city": "Bern"})";
  const std::pair<const char*, std::string> rows[] = {
      {"qwen3",
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + arguments + "}\n</tool_call>"},
      {"llama-3.1", "{\"name\": \"get_weather\", \"parameters\": " + arguments + "}"},
      {"mistral-nemo",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": " + arguments + "}]"},
      {"gpt-oss",
       "<|channel|>commentary to=functions.get_weather<|message|>" + arguments + "<|call|>"}};
  for (const auto& [name, call] : rows) {
    SCOPED_TRACE(name);
    serve(name);
    const ChatQuestion question = {.has_tools = true, .schema = kSchema};
    for_each_api(question, call, [](const ChatAnswer& answer) {
      EXPECT_EQ(answer.content, "");
      ASSERT_EQ(answer.calls.size(), 1u);
      EXPECT_EQ(answer.calls[0].name, "get_weather");
    });
    const bool is_harmony = name == std::string("gpt-oss");
    for_each_api(question, (is_harmony ? "<|channel|>final<|message|>" : "") + kStructured,
                 [](const ChatAnswer& answer) {
                   EXPECT_EQ(answer.content, kStructured);
                   EXPECT_TRUE(answer.calls.empty());
                 });
  }
}

// The text is cancelled, or the answer would never come. Ollama's API has no such field.
TEST_F(ChatAnswers, SingleCallsEndTheText) {
  serve("qwen3");
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
      "\"Bern\"}}\n</tool_call>\n";
  for (const std::string& path : test::kChatPaths)
    for (const bool is_streamed : {false, true}) {
      if (path == "/api/chat") continue;
      SCOPED_TRACE(path + (is_streamed ? ", streamed" : ""));
      const json request = test::chat_request(path, {.has_tools = true, .has_single_calls = true});
      sayings_->say_endlessly("I look.\n" + call);
      const ChatAnswer answer = test::ask(*server_, path, request, is_streamed);
      EXPECT_EQ(answer.content, "I look.");
      ASSERT_EQ(answer.calls.size(), 1u);
      EXPECT_EQ(answer.calls[0].name, "get_weather");
      EXPECT_EQ(answer.end, path == "/v1/messages"    ? "tool_use"
                            : path == "/v1/responses" ? "completed"
                                                      : "tool_calls");
      sayings_->say({"No call."});
      EXPECT_EQ(test::ask(*server_, path, request, is_streamed).content, "No call.");
    }
}

}  // namespace
}  // namespace prism::server
