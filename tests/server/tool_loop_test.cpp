// Tests the loop of tools through each API with each template that knows tools: the model calls,
// the client sends the server's own answer and a result back, and the model answers.
#include <algorithm>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/run_program.h"
#include "support/running_server.h"
#include "support/server/saying_model.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::RunningServer;

const std::string kResult = "21.5 degrees", kAnswer = "It is warm.";
const json kSchema = {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}};
const json kArguments = {{"city", "Zurich"}};

// A tool as OpenAI and Ollama have it.
json tool() {
  return {{"type", "function"},
          {"function",
           {{"name", "get_weather"}, {"description", "Weather."}, {"parameters", kSchema}}}};
}
json message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

struct Call {
  std::string name;
  json arguments;
};

// How a client of an API asks, reads the call, and sends it back with a result.
struct Api {
  const char* path;
  json request;
  std::function<Call(const json& answer)> call;
  std::function<void(json& request, const json& answer)> send_back;
  std::function<json(const json& answer)> content;
};

std::vector<Api> apis() {
  const json question = json::array({message("user", "How warm?")});
  std::vector<Api> all;
  all.push_back(
      {.path = "/v1/chat/completions",
       .request = {{"messages", question}, {"tools", json::array({tool()})}},
       .call =
           [](const json& answer) {
             const json& function = answer["choices"][0]["message"]["tool_calls"][0]["function"];
             return Call{function["name"], json::parse(function["arguments"].get<std::string>())};
           },
       .send_back =
           [](json& request, const json& answer) {
             const json& said = answer["choices"][0]["message"];
             json result = message("tool", kResult);
             result["tool_call_id"] = said["tool_calls"][0]["id"];
             request["messages"].push_back(said);
             request["messages"].push_back(result);
           },
       .content = [](const json& answer) { return answer["choices"][0]["message"]["content"]; }});
  json flat = tool()["function"];
  flat["type"] = "function";
  all.push_back(
      {.path = "/v1/responses",
       .request = {{"input", question}, {"tools", json::array({flat})}},
       .call =
           [](const json& answer) {
             const json& item = answer["output"].back();
             return Call{item["name"], json::parse(item["arguments"].get<std::string>())};
           },
       .send_back =
           [](json& request, const json& answer) {
             for (const json& item : answer["output"]) request["input"].push_back(item);
             request["input"].push_back({{"type", "function_call_output"},
                                         {"call_id", answer["output"].back()["call_id"]},
                                         {"output", kResult}});
           },
       .content =
           [](const json& answer) { return answer["output"].back()["content"][0]["text"]; }});
  const json anthropic = {{"name", "get_weather"}, {"input_schema", kSchema}};
  all.push_back(
      {.path = "/v1/messages",
       .request = {{"messages", question},
                   {"max_tokens", 500},
                   {"tools", json::array({anthropic})}},
       .call =
           [](const json& answer) {
             return Call{answer["content"].back()["name"], answer["content"].back()["input"]};
           },
       .send_back =
           [](json& request, const json& answer) {
             request["messages"].push_back({{"role", "assistant"}, {"content", answer["content"]}});
             const json result = {{"type", "tool_result"},
                                  {"tool_use_id", answer["content"].back()["id"]},
                                  {"content", kResult}};
             request["messages"].push_back({{"role", "user"}, {"content", json::array({result})}});
           },
       .content = [](const json& answer) { return answer["content"].back()["text"]; }});
  // The clients of Ollama know no ids.
  all.push_back(
      {.path = "/api/chat",
       .request = {{"messages", question}, {"stream", false}, {"tools", json::array({tool()})}},
       .call =
           [](const json& answer) {
             const json& function = answer["message"]["tool_calls"][0]["function"];
             return Call{function["name"], function["arguments"]};
           },
       .send_back =
           [](json& request, const json& answer) {
             json said = answer["message"];
             for (json& each : said["tool_calls"]) each.erase("id");
             json result = message("tool", kResult);
             result["tool_name"] = "get_weather";
             request["messages"].push_back(said);
             request["messages"].push_back(result);
           },
       .content = [](const json& answer) { return answer["message"]["content"]; }});
  return all;
}

struct Row {
  const char* name;  // of the template
  std::string call;  // as its model writes it
  bool shows_tools = true;
};

std::vector<Row> rows() {
  const std::string arguments = R"({"city": "Zurich"})";
  const std::string object = R"({"name": "get_weather", "arguments": )" + arguments + "}";
  const std::string llama = R"({"name": "get_weather", "parameters": )" + arguments + "}";
  const std::string hermes = "<tool_call>\n" + object + "\n</tool_call>";
  const std::string mistral = R"([TOOL_CALLS][{"name": "get_weather", "arguments": )" + arguments +
                              R"(, "id": "aB3dE6gH9"}])";
  return {
      {"chatglm4", llama, false},  // takes tools inside of messages only
      {"deepseek-r1",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n" +
           arguments + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       false},
      {"gpt-oss",
       "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.get_weather <|constrain|>json<|message|>" +
           arguments + "<|call|>"},
      {"granite-3.0", "<|tool_call|>[" + object + "]"},
      {"granite-3.3", "<|tool_call|>[" + object + "]"},
      {"granite-4.0", hermes},
      {"llama-3.1", llama},
      {"llama-3.2", llama},
      {"mistral-nemo", mistral},
      {"mistral-v3", mistral},
      {"qwen2.5", hermes},
      {"qwen3", hermes},
      {"qwen3-coder",
       "<tool_call>\n<function=get_weather>\n<parameter=city>\nZurich\n</parameter>\n"
       "</function>\n</tool_call>"},
      {"smollm3", hermes, false},
      {"smollm3-tools", hermes},
  };
}

std::filesystem::path folder() { return test::source_dir() / "tests/data/templates"; }

TEST(ToolLoop, WorksWithEveryTemplateThroughEveryApi) {
  for (const Row& row : rows()) {
    const test::TemporaryFolder models;
    const auto sayings = std::make_shared<test::Sayings>();
    const RunningServer running(test::saying_server(
        models.path(), test::read_file(folder() / (std::string(row.name) + ".jinja")), sayings));
    for (const Api& api : apis()) {
      SCOPED_TRACE(std::string(row.name) + ", " + api.path);
      sayings->say({row.call, row.name == std::string("gpt-oss")
                                  ? "<|channel|>final<|message|>" + kAnswer
                                  : kAnswer});
      json request = api.request;
      const auto post = [&] {
        const test::ClientReply reply = running.post(api.path, request.dump());
        EXPECT_EQ(reply.status, 200) << reply.body;
        return json::parse(reply.body);
      };
      try {
        const json called = post();
        const Call call = api.call(called);
        EXPECT_EQ(call.name, "get_weather");
        EXPECT_EQ(call.arguments, kArguments);
        api.send_back(request, called);
        EXPECT_EQ(api.content(post()), kAnswer);
      } catch (const json::exception& wrong) {
        ADD_FAILURE() << wrong.what();
        continue;
      }
      const std::vector<std::string> prompts = sayings->prompts();
      ASSERT_EQ(prompts.size(), 2u);
      EXPECT_EQ(prompts[0].find("get_weather") != std::string::npos, row.shows_tools) << prompts[0];
      EXPECT_EQ(prompts[0].find("Zurich"), std::string::npos);
      EXPECT_NE(prompts[1].find("get_weather"), std::string::npos) << prompts[1];
      EXPECT_NE(prompts[1].find("Zurich"), std::string::npos) << prompts[1];
      EXPECT_NE(prompts[1].find(kResult), std::string::npos) << prompts[1];
      if (row.name == std::string("gpt-oss")) {
        EXPECT_NE(prompts[1].find("<|channel|>analysis<|message|>Hm<|end|>"), std::string::npos);
      }
    }
  }
}

TEST(ToolLoop, EveryTemplateThatKnowsToolsIsTried) {
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() != ".jinja") continue;
    const bool is_tried = std::ranges::any_of(
        rows(), [&](const Row& row) { return entry.path().stem() == row.name; });
    EXPECT_EQ(is_tried, test::read_file(entry.path()).find("tool") != std::string::npos)
        << entry.path();
  }
}

}  // namespace
}  // namespace prism::server
