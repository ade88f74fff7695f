// Tests OpenAI's endpoints with a small model: whole answers, streams, options and errors.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prism/llm/language_model.h"
#include "support/models/chat_model.h"
#include "support/models/expected_text.h"
#include "support/models/greedy.h"
#include "support/run_program.h"
#include "support/running_server.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::ClientReply;
using test::RunningServer;

class OpenAi : public testing::Test {
 protected:
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static std::string path() { return test::shared_model("stories260K"); }
  static RunningServer& server() {
    static RunningServer running(RunningServer::with_model(path()));
    return running;
  }
  static json post(const std::string& path, const json& body, int status = 200) {
    const ClientReply reply = server().post(path, body.dump());
    EXPECT_EQ(reply.status, status) << reply.body;
    return json::parse(reply.body, nullptr, false);
  }
  // The JSON of a stream's events; the last one must be [DONE].
  static std::vector<json> stream(const std::string& path, json body) {
    body["stream"] = true;
    const ClientReply reply = server().post(path, body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<std::string> data = test::event_data(reply.body);
    EXPECT_FALSE(data.empty());
    if (data.empty()) return {};
    EXPECT_EQ(data.back(), "[DONE]");
    data.pop_back();
    std::vector<json> events;
    for (const std::string& each : data) events.push_back(json::parse(each));
    return events;
  }
  static json error(const std::string& path, const std::string& body, int status) {
    const ClientReply reply = server().post(path, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return json::parse(reply.body, nullptr, false)["error"];
  }
  // The text after "Once upon a time" from an independent engine.
  static std::string expected_tail() {
    std::ifstream file(std::string(path()).replace(path().rfind("models/"), std::string::npos,
                                                   "expected/stories260K.once.txt"));
    return std::string{std::istreambuf_iterator<char>(file), {}}.substr(16);
  }
  static json once(int tokens) {
    return {{"prompt", "Once upon a time"}, {"max_tokens", tokens}, {"temperature", 0}};
  }
  static json chat() {
    return {{"messages", json::array({{{"role", "user"}, {"content", "Once upon a time"}}})},
            {"max_tokens", 12},
            {"temperature", 0}};
  }
};

TEST_F(OpenAi, HealthAndModels) {
  EXPECT_EQ(json::parse(server().get("/health").body)["status"], "ok");
  for (const char* path : {"/v1/models", "/models"}) {
    const json list = json::parse(server().get(path).body);
    EXPECT_EQ(list["object"], "list");
    EXPECT_EQ(list["data"][0]["id"], "tiny");
  }
  EXPECT_EQ(json::parse(server().get("/v1/models/tiny").body)["id"], "tiny");
  EXPECT_EQ(server().get("/v1/models/none").status, 404);
}

TEST_F(OpenAi, CompletionIsTheTextOfAnIndependentEngine) {
  for (const char* path : {"/v1/completions", "/completions"}) {
    const json reply = post(path, once(60));
    EXPECT_EQ(reply["object"], "text_completion");
    EXPECT_EQ(reply["choices"][0]["text"], expected_tail());
    EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(reply["usage"]["prompt_tokens"], 5);
    EXPECT_EQ(reply["usage"]["completion_tokens"], 60);
    EXPECT_EQ(reply["usage"]["total_tokens"], 65);
  }
}

TEST_F(OpenAi, StreamedPiecesJoinToTheWhole) {
  std::string text;
  json body = once(60);
  body["stream_options"] = {{"include_usage", true}};
  const std::vector<json> events = stream("/v1/completions", body);
  ASSERT_GT(events.size(), 20u);
  for (const json& each : events) {
    EXPECT_EQ(each["id"], events[0]["id"]);
    if (!each["choices"].empty()) text += each["choices"][0]["text"].get<std::string>();
  }
  EXPECT_EQ(text, expected_tail());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 60);
  EXPECT_TRUE(events[0]["usage"].is_null());
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "length");
}

TEST_F(OpenAi, ChatUsesTheTemplateAndStreams) {
  const json whole = post("/v1/chat/completions", chat());
  const std::string text = whole["choices"][0]["message"]["content"];
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["choices"][0]["message"]["role"], "assistant");
  EXPECT_FALSE(text.empty());

  llm::LanguageModel model = [] {
    llm::LoadOptions options = RunningServer::with_model(path()).load;
    return llm::LanguageModel::load(path(), options);
  }();
  EXPECT_EQ(text, model
                      .generate("<|im_start|>user\nOnce upon a time<|im_end|>\n<|im_start|>"
                                "assistant\n",
                                test::greedy(12))
                      .text);

  std::string streamed;
  const std::vector<json> events = stream("/v1/chat/completions", chat());
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  for (const json& each : events) {
    EXPECT_EQ(each["object"], "chat.completion.chunk");
    const json& delta = each["choices"][0]["delta"];
    if (delta.contains("content") && delta["content"].is_string())
      streamed += delta["content"].get<std::string>();
  }
  EXPECT_EQ(streamed, text);
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "length");
}

TEST_F(OpenAi, ContentPartsAreJoined) {
  json parts = chat();
  parts["messages"][0]["content"] = json::array({{{"type", "text"}, {"text", "Once upon a time"}}});
  EXPECT_EQ(post("/v1/chat/completions", parts)["choices"][0]["message"],
            post("/v1/chat/completions", chat())["choices"][0]["message"]);
  parts["messages"][0]["content"] =
      json::array({{{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64,"}}}}});
  const json refusal = error("/v1/chat/completions", parts.dump(), 400);
  EXPECT_EQ(refusal["param"], "messages[0].content[0].type");
}

TEST_F(OpenAi, StopsAtTexts) {
  json body = once(60);
  const std::string all = expected_tail();
  const std::string stop = all.substr(all.find(' ', 20), 4);
  body["stop"] = {stop, "\x01"};
  const json reply = post("/v1/completions", body);
  EXPECT_EQ(reply["choices"][0]["text"], all.substr(0, all.find(stop)));
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
}

TEST_F(OpenAi, SeedsRepeatAndChoicesDiffer) {
  json body = once(20);
  body["temperature"] = 1.5;
  body["seed"] = 7;
  body["n"] = 3;
  const json first = post("/v1/completions", body), second = post("/v1/completions", body);
  ASSERT_EQ(first["choices"].size(), 3u);
  EXPECT_EQ(first["choices"], second["choices"]);
  EXPECT_NE(first["choices"][0]["text"], first["choices"][1]["text"]);
  EXPECT_EQ(first["choices"][2]["index"], 2);
  EXPECT_EQ(first["usage"]["prompt_tokens"], 5);
}

TEST_F(OpenAi, SeveralPromptsAndTokenIds) {
  json body = once(8);
  body["prompt"] = {"Once upon a time", "The cat"};
  const json two = post("/v1/completions", body);
  ASSERT_EQ(two["choices"].size(), 2u);
  EXPECT_EQ(two["choices"][0]["text"], post("/v1/completions", once(8))["choices"][0]["text"]);
  const std::vector<int32_t> ids =
      test::expected_text("stories260K.once", "stories260K.once.f32").ids;
  body["prompt"] = std::vector<int32_t>(ids.begin(), ids.begin() + 5);
  EXPECT_EQ(post("/v1/completions", body)["choices"][0]["text"], two["choices"][0]["text"]);
  body["prompt"] = json::array({std::vector<int32_t>(ids.begin(), ids.begin() + 5)});
  EXPECT_EQ(post("/v1/completions", body)["choices"][0]["text"], two["choices"][0]["text"]);
}

TEST_F(OpenAi, BiasRulesOutATokenAndEchoRepeatsThePrompt) {
  const std::vector<int32_t> ids =
      test::expected_text("stories260K.once", "stories260K.once.f32").ids;
  json body = once(1);
  body["echo"] = true;
  const std::string usual = post("/v1/completions", body)["choices"][0]["text"];
  EXPECT_TRUE(usual.starts_with("Once upon a time")) << usual;
  body["logit_bias"] = {{std::to_string(ids[5]), -100}};
  EXPECT_NE(post("/v1/completions", body)["choices"][0]["text"], usual);
}

TEST_F(OpenAi, LogprobsAreThoseOfScoring) {
  llm::LanguageModel model =
      llm::LanguageModel::load(path(), RunningServer::with_model(path()).load);
  const std::vector<llm::TokenScore> scores =
      model.score("Once upon a time" + expected_tail().substr(0, 30), 3);
  json body = once(4);
  body["logprobs"] = 3;
  const json reply = post("/v1/completions", body)["choices"][0]["logprobs"];
  ASSERT_EQ(reply["token_logprobs"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(reply["token_logprobs"][i].get<double>(), *scores[5 + i].logprob, 1e-4);
    EXPECT_EQ(reply["top_logprobs"][i].size(), 3u);
  }
  json asked = chat();
  asked["logprobs"] = true;
  asked["top_logprobs"] = 2;
  const json content = post("/v1/chat/completions", asked)["choices"][0]["logprobs"]["content"];
  EXPECT_EQ(content.size(), 12u);
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[0]["logprob"], content[0]["top_logprobs"][0]["logprob"]);
  size_t streamed = 0;
  for (const json& each : stream("/v1/chat/completions", asked))
    if (each["choices"][0]["logprobs"].is_object())
      streamed += each["choices"][0]["logprobs"]["content"].size();
  EXPECT_EQ(streamed, 12u);
}

TEST_F(OpenAi, SchemasHoldTheText) {
  json body = chat();
  body["max_tokens"] = 200;
  body["response_format"] = {
      {"type", "json_schema"},
      {"json_schema",
       {{"name", "answer"},
        {"schema",
         {{"type", "object"},
          {"properties", {{"colour", {{"enum", {"red", "blue"}}}}, {"ok", {{"type", "boolean"}}}}},
          {"required", {"colour", "ok"}}}}}}};
  const json reply = post("/v1/chat/completions", body);
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
  const json answer = json::parse(reply["choices"][0]["message"]["content"].get<std::string>());
  EXPECT_TRUE(answer["colour"] == "red" || answer["colour"] == "blue");
  EXPECT_TRUE(answer["ok"].is_boolean());
}

TEST_F(OpenAi, WrongValuesAreNamed) {
  const std::string completions = "/v1/completions", chats = "/v1/chat/completions";
  const auto wrong = [&](const std::string& path, json body, const std::string& key,
                         const json& value, const std::string& param) {
    body[key] = value;
    const json refusal = error(path, body.dump(), 400);
    EXPECT_EQ(refusal["param"], param) << refusal;
    EXPECT_EQ(refusal["type"], "invalid_request_error");
  };
  wrong(completions, once(1), "temperature", "hot", "temperature");
  wrong(completions, once(1), "temperature", -1, "temperature");
  wrong(completions, once(1), "top_p", 2, "top_p");
  wrong(completions, once(1), "n", 0, "n");
  wrong(completions, once(1), "max_tokens", 1.5, "max_tokens");
  wrong(completions, once(1), "prompt", 5, "prompt");
  wrong(completions, once(1), "prompt", {1, 999999}, "prompt[1]");
  wrong(completions, once(1), "stop", json::array({1}), "stop[0]");
  wrong(completions, once(1), "logit_bias", {{"999999", 1}}, "logit_bias.999999");
  wrong(completions, once(1), "logit_bias", {{"5", 1e300}}, "logit_bias.5");
  // Lists that would hold up the texts of all clients.
  const std::vector<std::string> texts(257, "x");
  wrong(completions, once(1), "stop", texts, "stop");
  wrong(completions, once(1), "dry_sequence_breakers", texts, "dry_sequence_breakers");
  wrong(completions, once(1), "logit_bias", std::vector(513, json::array({1, 0.5})), "logit_bias");
  wrong(completions, once(1), "logprobs", 99, "logprobs");
  wrong(chats, chat(), "messages", json::array(), "messages");
  wrong(chats, chat(), "messages", "hello", "messages");
  wrong(chats, chat(), "messages", json::array({{{"content", "x"}}}), "messages[0].role");
  wrong(chats, chat(), "messages", json::array({{{"role", "user"}}}), "messages[0].content");
  wrong(chats, chat(), "top_logprobs", 2, "top_logprobs");
  wrong(chats, chat(), "response_format", {{"type", "xml"}}, "response_format.type");
  wrong(chats, chat(), "response_format", {{"type", "json_schema"}},
        "response_format.json_schema.schema");
  wrong(chats, chat(), "samplers", {"top_k", "x"}, "samplers");
  wrong(chats, chat(), "samplers", 5, "samplers");
  wrong(chats, chat(), "stop", 5, "stop");
  wrong(chats, chat(), "logit_bias", 5, "logit_bias");
  wrong(chats, chat(), "tool_choice", 5, "tool_choice");
  error(completions, "{", 400);
  error(completions, "[]", 400);
  error(completions, "", 400);
  error(completions, "{\"prompt\":\"\xff\"}", 400);
  json unknown = once(1);
  unknown["metadata"] = {{"a", 1}};
  unknown["store"] = true;
  unknown["user"] = "someone";
  post(completions, unknown);
}

TEST_F(OpenAi, PromptsBeyondTheContextAreRefused) {
  json body = once(1);
  body["prompt"] = std::vector<int>(300, 5);
  const json refusal = error("/v1/completions", body.dump(), 400);
  EXPECT_NE(refusal["message"].get<std::string>().find("300"), std::string::npos);
  EXPECT_EQ(refusal["code"], "context_length_exceeded");
  EXPECT_EQ(refusal["n_prompt_tokens"], 300);
  EXPECT_EQ(refusal["n_ctx"], 256);
  body["stream"] = true;
  error("/v1/completions", body.dump(), 400);
}

TEST_F(OpenAi, PathsAndMethodsThatDoNotExist) {
  EXPECT_EQ(server().get("/v1/nothing").status, 404);
  EXPECT_EQ(server().get("/v1/../health").status, 404);
  EXPECT_EQ(server().get("//health").status, 404);
  EXPECT_EQ(server().get("/v1/completions").status, 405);
  EXPECT_EQ(server().post("/health", "{}").status, 405);
}

TEST_F(OpenAi, ManyRequestsAtOnceKeepTheirTexts) {
  std::vector<std::thread> clients;
  const std::string expected = expected_tail();
  std::atomic<int> right = 0;
  for (int i = 0; i < 12; ++i)
    clients.emplace_back([&, i] {
      const int tokens = 10 + i * 4;
      const ClientReply reply = server().post("/v1/completions", once(tokens).dump());
      const std::string text = json::parse(reply.body)["choices"][0]["text"];
      if (expected.starts_with(text) && text.size() >= static_cast<size_t>(tokens)) ++right;
    });
  for (std::thread& each : clients) each.join();
  EXPECT_EQ(right, 12);
}

TEST_F(OpenAi, RequiredToolsGiveArgumentsThatParse) {
  json body = chat();
  body["max_tokens"] = 200;
  body["tools"] = json::array({{{"type", "function"},
                                {"function",
                                 {{"name", "paint"},
                                  {"parameters",
                                   {{"type", "object"},
                                    {"properties", {{"colour", {{"enum", {"red", "blue"}}}}}},
                                    {"required", {"colour"}}}}}}}});
  for (const json& choice :
       {json("required"), json({{"type", "function"}, {"function", {{"name", "paint"}}}})}) {
    body["tool_choice"] = choice;
    const json message = post("/v1/chat/completions", body)["choices"][0];
    EXPECT_EQ(message["finish_reason"], "tool_calls") << message;
    const json function = message["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(function["name"], "paint");
    EXPECT_TRUE(json::parse(function["arguments"].get<std::string>()).contains("colour"));
    std::string arguments;
    for (const json& each : stream("/v1/chat/completions", body))
      for (const json& call : each["choices"][0]["delta"].value("tool_calls", json::array()))
        arguments += call["function"]["arguments"].get<std::string>();
    EXPECT_EQ(json::parse(arguments), json::parse(function["arguments"].get<std::string>()));
  }
  body["tool_choice"] = "sometimes";
  EXPECT_EQ(error("/v1/chat/completions", body.dump(), 400)["param"], "tool_choice");
  body["tool_choice"] = {{"type", "function"}, {"function", {{"name", "sing"}}}};
  EXPECT_EQ(error("/v1/chat/completions", body.dump(), 400)["param"], "tool_choice.function.name");
  // A schema as pydantic writes it for a class inside another one.
  json& parameters = body["tools"][0]["function"]["parameters"];
  parameters = json::parse(R"({"$defs":{"Colour":{"enum":["red","blue"]}},"type":"object",
      "properties":{"colour":{"$ref":"#/$defs/Colour"}},"required":["colour"]})");
  body["tool_choice"] = "required";
  const json called = post("/v1/chat/completions", body)["choices"][0]["message"]["tool_calls"][0];
  EXPECT_TRUE(json::parse(called["function"]["arguments"].get<std::string>()).contains("colour"));
  parameters["properties"]["colour"]["$ref"] = "#/$defs/nowhere";
  EXPECT_EQ(error("/v1/chat/completions", body.dump(), 400)["param"], "tools");
  parameters = {{"type", "string"}};
  EXPECT_EQ(error("/v1/chat/completions", body.dump(), 400)["param"],
            "tools[0].function.parameters.type");
  const json unknown = {{"max_tokens", 5},
                        {"messages", body["messages"]},
                        {"tools", {{{"name", "paint"}, {"input_schema", {{"type", "object"}}}}}},
                        {"tool_choice", {{"type", "tool"}, {"name", "sing"}}}};
  const std::string message = error("/v1/messages", unknown.dump(), 400)["message"];
  EXPECT_EQ(message, "tool_choice.name is \"sing\", which is not in tools");
}

TEST_F(OpenAi, EmbeddingsAsFloatsAndBase64) {
  const json two = post("/v1/embeddings", {{"input", {"a cat", "a dog"}}});
  ASSERT_EQ(two["data"].size(), 2u);
  const auto vector = two["data"][0]["embedding"].get<std::vector<float>>();
  double square = 0;
  for (const float each : vector) square += each * each;
  EXPECT_NEAR(square, 1, 1e-4);
  const json text = post("/v1/embeddings", {{"input", "a cat"}, {"encoding_format", "base64"}});
  EXPECT_EQ(text["data"][0]["embedding"].get<std::string>().size(),
            (vector.size() * 4 + 2) / 3 * 4);
  const json shorter = post("/v1/embeddings", {{"input", "a cat"}, {"dimensions", 8}});
  EXPECT_EQ(shorter["data"][0]["embedding"].size(), 8u);
  error("/v1/embeddings", R"({"input":"a","dimensions":100000})", 400);
  EXPECT_EQ(error("/v1/embeddings", R"({"input":[]})", 400)["param"], "input");
}

TEST_F(OpenAi, SuffixFillsInTheMiddle) {
  const test::TemporaryFolder folder;
  const std::string fill = test::with_fill_tokens(path(), folder.path(), {10, 11, 12});
  const RunningServer running(RunningServer::with_model(fill));
  const auto reply = [&](const std::string& to, const json& body) {
    const ClientReply answer = running.post(to, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body, nullptr, false);
  };
  const auto tokens = [&](const std::string& text) {
    return reply("/tokenize", {{"content", text}})["tokens"].get<std::vector<int>>();
  };
  std::vector<int> prompt = {1, 10};
  for (const int each : tokens("Once upon")) prompt.push_back(each);
  prompt.push_back(11);
  for (const int each : tokens("The end.")) prompt.push_back(each);
  prompt.push_back(12);
  json body = once(12);
  body["prompt"] = prompt;
  const json expected = reply("/v1/completions", body)["choices"][0]["text"];
  body["prompt"] = "Once upon";
  body["suffix"] = "The end.";
  EXPECT_EQ(reply("/v1/completions", body)["choices"][0]["text"], expected);
  body["prompt"] = {"Once upon", "Once upon"};
  EXPECT_EQ(reply("/v1/completions", body)["choices"][1]["text"], expected);
  EXPECT_EQ(reply("/infill", {{"input_prefix", "Once upon"},
                              {"input_suffix", "The end."},
                              {"n_predict", 12},
                              {"temperature", 0}})["content"],
            expected);
  EXPECT_EQ(
      reply("/api/generate", {{"prompt", "Once upon"},
                              {"suffix", "The end."},
                              {"stream", false},
                              {"options", {{"temperature", 0}, {"num_predict", 12}}}})["response"],
      expected);
  body["echo"] = true;
  EXPECT_EQ(running.post("/v1/completions", body.dump()).status, 400);
  // The model of the other tests has no such tokens.
  json refused = once(1);
  refused["suffix"] = "The end.";
  EXPECT_EQ(error("/v1/completions", refused.dump(), 400)["param"], "suffix");
}

TEST_F(OpenAi, NativeEndpoints) {
  const json tokens = post("/tokenize", {{"content", "Once upon a time"}})["tokens"];
  EXPECT_EQ(tokens.size(), 4u);
  EXPECT_EQ(post("/detokenize", {{"tokens", tokens}})["content"], "Once upon a time");
  EXPECT_EQ(post("/tokenize", {{"content", "Once"}, {"with_pieces", true}})["tokens"][0]["id"],
            tokens[0]);
  EXPECT_EQ(post("/apply-template", chat())["prompt"],
            "<|im_start|>user\nOnce upon a time<|im_end|>\n<|im_start|>assistant\n");
  const json whole =
      post("/completion", {{"prompt", "Once upon a time"}, {"n_predict", 60}, {"temperature", 0}});
  EXPECT_EQ(whole["content"], expected_tail());
  EXPECT_EQ(whole["stop_type"], "limit");
  EXPECT_EQ(whole["tokens_predicted"], 60);
  EXPECT_TRUE(whole["tokens"].empty());
  EXPECT_EQ(whole["generation_settings"]["n_predict"], 60);
  const json chosen = post("/completion", {{"prompt", "Once upon a time"},
                                           {"n_predict", 2},
                                           {"return_tokens", true},
                                           {"response_fields", {"tokens", "timings/predicted_n"}}});
  EXPECT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen["tokens"].size(), 2u);
  EXPECT_EQ(chosen["timings/predicted_n"], 2);
  const json props = json::parse(server().get("/props").body);
  EXPECT_EQ(props["total_slots"], 2);
  EXPECT_EQ(props["default_generation_settings"]["n_ctx"], 256);
  EXPECT_EQ(json::parse(server().get("/slots").body).size(), 2u);
  EXPECT_NE(server().get("/metrics").body.find("prism:tokens_predicted_total"), std::string::npos);
  EXPECT_FALSE(json::parse(server().get("/devices").body)["devices"].empty());
}

TEST_F(OpenAi, TemplatesGetTheServersAndTheRequestsVariables) {
  ServerOptions options = RunningServer::with_model(path());
  options.chat_template = "{{ messages[0].content }} {{ place }} {{ time }}";
  options.template_variables = R"({"place": "here", "time": "now"})";
  options.is_verbose = true;
  const RunningServer running(std::move(options));
  json body = chat();
  EXPECT_EQ(json::parse(running.post("/apply-template", body.dump()).body)["prompt"],
            "Once upon a time here now");
  body["chat_template_kwargs"] = {{"time", "then"}};
  EXPECT_EQ(json::parse(running.post("/apply-template", body.dump()).body)["prompt"],
            "Once upon a time here then");
  const json reply = json::parse(running.post("/v1/chat/completions", body.dump()).body);
  EXPECT_NE(reply["__verbose"]["prompt"].get<std::string>().find("here then"), std::string::npos);
}

// Whether a proposal pays depends on times, so the counts are only compared with each other.
TEST_F(OpenAi, SpeculationIsReportedAndKeepsTheText) {
  ServerOptions options = RunningServer::with_model(path());
  options.load.speculate = "ngram";
  const RunningServer speculating(std::move(options));
  const std::string request =
      R"({"prompt": "Tom ran. Tom ran. Tom ran. Tom ran. Tom ran.", "max_tokens": 60,)"
      R"( "temperature": 0})";
  const json reply = json::parse(speculating.post("/v1/completions", request).body);
  EXPECT_EQ(reply["choices"][0]["text"],
            json::parse(server().post("/v1/completions", request).body)["choices"][0]["text"]);
  const int64_t proposed = reply["timings"]["draft_n"];
  const int64_t accepted = reply["timings"]["draft_n_accepted"];
  const json details = reply["usage"]["completion_tokens_details"];
  EXPECT_EQ(details["accepted_prediction_tokens"], accepted);
  EXPECT_EQ(details["rejected_prediction_tokens"], proposed - accepted);
  const std::string metrics = speculating.get("/metrics").body;
  for (const auto& [name, count] : {std::pair("prism:tokens_proposed_total", proposed),
                                    std::pair("prism:tokens_accepted_total", accepted)})
    EXPECT_NE(metrics.find(fmt::format("\n{} {}\n", name, count)), std::string::npos) << metrics;
}

TEST_F(OpenAi, TextsThatTheEndCutsOffEndWithAnError) {
  ServerOptions options = RunningServer::with_model(path());
  options.load.fit.context = 100000;  // for minutes
  RunningServer running(std::move(options));
  json body = once(99000);
  body["stream"] = body["ignore_eos"] = true;
  std::thread end([&] {
    while (running.state().texts.empty() || !running.state().texts[0].is_begun)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    running.stop(0.1);
  });
  const ClientReply reply = running.post("/v1/completions", body.dump());
  end.join();
  const std::vector<std::string> data = test::event_data(reply.body);
  ASSERT_GE(data.size(), 3u);
  EXPECT_TRUE(json::parse(data[0]).contains("choices"));
  const auto last = std::ranges::find_if(
      data, [](const std::string& each) { return each.find("\"error\"") != each.npos; });
  ASSERT_NE(last, data.end()) << data.back();
  EXPECT_EQ(json::parse(*last)["error"]["code"], "server_ended");
}

TEST(ServerAccess, KeysAreNeededButForHealth) {
  const std::string path = test::shared_model("stories260K");
  if (path.empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  ServerOptions options = RunningServer::with_model(path);
  options.access.api_keys = {"secret"};
  options.access.cors = {"https://app.example"};
  const RunningServer running(std::move(options));
  EXPECT_EQ(running.get("/health").status, 200);
  const ClientReply refused = running.get("/v1/models");
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(json::parse(refused.body)["error"]["type"], "authentication_error");
  EXPECT_EQ(running.get("/v1/models", {"authorization: Bearer secret"}).status, 200);
  EXPECT_EQ(running.get("/v1/models", {"x-api-key: secret"}).status, 200);
  EXPECT_EQ(running.get("/v1/models", {"x-api-key: secret", "origin: https://evil.example"}).status,
            403);
  ClientReply allowed =
      running.get("/v1/models", {"x-api-key: secret", "origin: https://app.example"});
  EXPECT_EQ(allowed.status, 200);
  EXPECT_EQ(allowed.headers["access-control-allow-origin"], "https://app.example");
  const ClientReply preflight = test::request(running.port(), "OPTIONS", "/v1/chat/completions", "",
                                              {"origin: https://app.example"});
  EXPECT_EQ(preflight.status, 200);
}

}  // namespace
}  // namespace prism::server
