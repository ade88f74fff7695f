// Tests the parts of a chat's answer through every API, whole and streamed: reasoning, content that
// follows a schema, and calls that the model chooses.
#include <map>

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

// Formats with two calls and reasoning, as models write them.
struct Written {
  const char* name;  // of the template
  std::string thought, content, calls;
};

std::vector<Written> written() {
  const std::string weather = R"({"name": "get_weather", "arguments": {"city": "Zürich \"x\""}})";
  const std::string time = R"({"name": "get_time", "arguments": {}})";
  const std::string arguments = R"({"city": "Zürich \"x\""})";
  return {
      {"qwen3", "<think>\nHm.\n</think>\n\n", "I look.",
       "\n<tool_call>\n" + weather + "\n</tool_call>\n<tool_call>\n" + time + "\n</tool_call>"},
      {"deepseek-r1", "Hm.\n</think>\n\n", "I look.",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" +
           arguments +
           "\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```"
           "json\n{}"
           "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"granite-3.3", "<think>Hm.</think>", "I look.",
       "<|tool_call|>[" + weather + ", " + time + "]"},
      {"smollm3-tools", "<think>\nHm.\n</think>\n", "I look.",
       "<tool_call>\n" + weather + "\n</tool_call>\n<tool_call>\n" + time + "\n</tool_call>"},
      {"gpt-oss", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant",
       "<|channel|>final<|message|>I look.",
       "<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json"
       "<|message|>" +
           arguments +
           "<|call|><|start|>assistant<|channel|>commentary "
           "to=functions.get_time<|message|>{}<|call|>"},
  };
}

TEST_F(ChatAnswers, ReasoningComesApart) {
  for (const Written& row : written()) {
    SCOPED_TRACE(row.name);
    serve(row.name);
    for (const bool has_tools : {true, false})
      for_each_api({.has_tools = has_tools}, row.thought + row.content,
                   [](const ChatAnswer& answer) {
                     EXPECT_EQ(answer.reasoning, "Hm.");
                     EXPECT_EQ(answer.content, "I look.");
                     EXPECT_TRUE(answer.calls.empty());
                   });
    // Marks that are control tokens are seen with and without tools.
    const bool has_control_tokens =
        row.name != std::string("qwen3") && row.name != std::string("smollm3-tools");
    EXPECT_EQ(sayings_->options().show_special, has_control_tokens);
  }
}

// What comes before the calls stays content; arguments are objects or texts as the API wants them.
TEST_F(ChatAnswers, ModelsMayCallTools) {
  for (const Written& row : written()) {
    serve(row.name);
    for (const std::string& path : test::kChatPaths)
      for (const bool is_streamed : {false, true}) {
        SCOPED_TRACE(std::string(row.name) + path + (is_streamed ? ", streamed" : ""));
        sayings_->say({row.thought + row.content + row.calls});
        const ChatAnswer answer =
            test::ask(*server_, path, test::chat_request(path, {.has_tools = true}), is_streamed);
        EXPECT_EQ(answer.reasoning, "Hm.");
        EXPECT_EQ(answer.content, "I look.");
        ASSERT_EQ(answer.calls.size(), 2u);
        EXPECT_EQ(answer.calls[0].name, "get_weather");
        EXPECT_EQ(answer.calls[1].name, "get_time");
        const bool are_objects = path == "/api/chat" || (path == "/v1/messages" && !is_streamed);
        const auto arguments = [&](size_t i) {
          const json& given = answer.calls[i].arguments;
          EXPECT_EQ(given.is_object(), are_objects) << given;
          return given.is_object() ? given : json::parse(given.get<std::string>());
        };
        EXPECT_EQ(arguments(0), json({{"city", "Zürich \"x\""}}));
        EXPECT_EQ(arguments(1), json::object());
        const std::map<std::string, std::string> ends = {{"/v1/chat/completions", "tool_calls"},
                                                         {"/v1/responses", "completed"},
                                                         {"/v1/messages", "tool_use"},
                                                         {"/api/chat", "stop"}};
        EXPECT_EQ(answer.end, ends.at(path));
      }
  }
}

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

TEST_F(ChatAnswers, RequiredCallsFollowTheEndOfThinking) {
  serve("deepseek-r1");
  json request = test::chat_request("/v1/chat/completions", {.has_tools = true});
  request["tool_choice"] = "required";
  sayings_->say({R"({"name":"get_time","arguments":{}})"});
  const ChatAnswer answer = test::ask(*server_, "/v1/chat/completions", request, false);
  EXPECT_EQ(answer.calls, (std::vector<ChatCall>{{"get_time", "{}"}}));
  EXPECT_TRUE(sayings_->prompts()[0].ends_with("<think>\n\n</think>\n\n"));
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
