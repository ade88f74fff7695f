// Tests OpenAI's endpoints with a small model: whole answers, streams, options and errors.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prism/llm/language_model.h"
#include "support/models/chat_model.h"
#include "support/models/greedy.h"
#include "support/run_program.h"
#include "support/server/openai_server.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::ClientReply;
using test::RunningServer;
using OpenAi = test::OpenAiServer;

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

TEST_F(OpenAi, StreamsTellHowMuchOfThePromptWasRead) {
  json completion = once(5), chats = chat();
  const std::string unseen = "The reading of this prompt is reported. Once upon a time";
  completion["prompt"] = unseen;
  chats["messages"][0]["content"] = unseen;
  const json native = {{"prompt", unseen}, {"n_predict", 5}};
  const std::pair<std::string, json> requests[] = {
      {"/v1/completions", completion}, {"/v1/chat/completions", chats}, {"/completion", native}};
  // The native endpoint ends its streams without [DONE].
  const auto events = [](const std::string& path, json body) {
    if (path != "/completion") return stream(path, body);
    body["stream"] = true;
    std::vector<json> parsed;
    for (const std::string& each : test::event_data(server().post(path, body.dump()).body))
      parsed.push_back(json::parse(each));
    return parsed;
  };
  for (auto [path, body] : requests) {
    for (const json& each : events(path, body)) EXPECT_FALSE(each.contains("prompt_progress"));
    body["return_progress"] = true;
    const size_t whole = post(path, body).size();
    std::vector<json> reports;
    bool has_text = false;
    for (const json& each : events(path, body)) {
      if (!each.contains("prompt_progress")) {
        has_text = has_text || path != "/v1/chat/completions" ||
                   each["choices"][0]["delta"].value("content", json()).is_string();
        continue;
      }
      EXPECT_FALSE(has_text) << path;
      reports.push_back(each["prompt_progress"]);
    }
    ASSERT_GE(reports.size(), 2u) << path;
    EXPECT_EQ(reports[0]["processed"], reports[0]["cache"]);
    EXPECT_GT(reports[0]["total"], 10);
    EXPECT_EQ(reports.back()["processed"], reports[0]["total"]);
    EXPECT_GT(reports.back()["time_ms"], 0);
    body["return_progress"] = false;
    EXPECT_EQ(post(path, body).size(), whole);
    body["return_progress"] = 3;
    EXPECT_EQ(error(path, body.dump(), 400)["param"], "return_progress");
  }
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

// Numbers of JSON are doubles for many clients, and uint32 for those of llama.cpp's server.
TEST_F(OpenAi, ReportedSeedsRepeatTheText) {
  for (int i = 0; i < 8; ++i) {
    json body = {{"prompt", "Once upon a time"}, {"n_predict", 12}, {"temperature", 1.5}};
    const json first = post("/completion", body);
    body["seed"] = first["generation_settings"]["seed"];
    EXPECT_LE(body["seed"].get<uint64_t>(), UINT32_MAX);
    EXPECT_EQ(post("/completion", body)["content"], first["content"]);
  }
}

TEST_F(OpenAi, PropsTellRandomSeedsFromFixedOnes) {
  const auto seed = [](const RunningServer& from) {
    return json::parse(from.get("/props").body)["default_generation_settings"]["params"]["seed"];
  };
  EXPECT_EQ(seed(server()), -1);
  server::ServerOptions options = RunningServer::with_model(path());
  options.generation = [](const llm::GgufFile&) {
    llm::GenerationOptions generation;
    generation.sampler.seed = 5;
    return generation;
  };
  EXPECT_EQ(seed(RunningServer(std::move(options))), 5);
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

TEST_F(OpenAi, LogprobsNamePartsOfCharacters) {
  const auto byte = [](int value) { return value + 3; };  // after <unk>, <s> and </s>
  json body = {{"prompt", {byte(0xe6), byte(0x97), byte('a')}},
               {"max_tokens", 0},
               {"echo", true},
               {"logprobs", 1}};
  EXPECT_EQ(post("/v1/completions", body)["choices"][0]["logprobs"]["tokens"],
            json::array({"bytes:\\xe6", "bytes:\\x97", "a"}));
}

// The reader of thinking and of calls holds tokens back: spaces, and what is around a call.
TEST_F(OpenAi, StreamedLogprobsAreThoseOfTheWhole) {
  server::ServerOptions options = RunningServer::with_model(path());
  options.chat_template = "{{ messages[0].content }}{# <think> #}";
  const RunningServer thinking(std::move(options));
  const auto tokens_of = [](const json& scores) {
    std::string text;
    for (const json& each : scores) text += each["token"].get<std::string>() + "|";
    return text;
  };
  json spaced = chat(), calls = chat();
  spaced["grammar"] = R"(root ::= "\n\n" [a-z ]{8} "\n\n")";
  calls["tool_choice"] = "required";
  const json colour = {{"type", "object"},
                       {"properties", {{"colour", {{"enum", {"red", "blue"}}}}}},
                       {"required", {"colour"}}};
  calls["tools"] = json::array(
      {{{"type", "function"}, {"function", {{"name", "paint"}, {"parameters", colour}}}}});
  for (json body : {spaced, calls}) {
    body["logprobs"] = true;
    body["max_tokens"] = 100;
    const auto post = [&](const char* to, bool is_streamed) {
      body["stream"] = is_streamed;
      return thinking.post(to, body.dump()).body;
    };
    const json whole = json::parse(post("/v1/chat/completions", false))["choices"][0];
    std::string streamed;
    for (const std::string& each : test::event_data(post("/v1/chat/completions", true)))
      if (const json event = json::parse(each, nullptr, false); event.is_object())
        if (const json& scores = event["choices"][0]["logprobs"]; scores.is_object())
          streamed += tokens_of(scores["content"]);
    EXPECT_GT(whole["logprobs"]["content"].size(), 3u);
    EXPECT_EQ(streamed, tokens_of(whole["logprobs"]["content"]));

    body["options"] = {{"temperature", 0}, {"num_predict", 100}};
    if (body.contains("grammar")) body["options"]["grammar"] = body["grammar"];
    const std::string expected = tokens_of(json::parse(post("/api/chat", false))["logprobs"]);
    streamed.clear();
    std::istringstream lines(post("/api/chat", true));
    for (std::string line; std::getline(lines, line);)
      streamed += tokens_of(json::parse(line).value("logprobs", json::array()));
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(streamed, expected);
  }
  spaced["input"] = spaced["messages"];
  spaced["top_logprobs"] = 1;
  const json whole = json::parse(thinking.post("/v1/responses", spaced.dump()).body);
  spaced["stream"] = true;
  json done, deltas = json::array();
  for (const std::string& each :
       test::event_data(thinking.post("/v1/responses", spaced.dump()).body)) {
    const json event = json::parse(each);
    if (event["type"] == "response.output_text.done") done = event["logprobs"];
    if (event["type"] == "response.output_text.delta")
      for (const json& score : event["logprobs"]) deltas.push_back(score);
  }
  EXPECT_EQ(tokens_of(deltas), tokens_of(whole["output"][0]["content"][0]["logprobs"]));
  EXPECT_EQ(done, deltas);
}

TEST_F(OpenAi, PropsSayWhyTheDeviceWasChosen) {
  server::ServerOptions options = RunningServer::with_model(path());
  options.load.fit.device = "auto";
  const std::string why = llm::LanguageModel::load(path(), options.load).device().why();
  const RunningServer running(std::move(options));
  running.post("/completion", R"({"prompt": "a", "n_predict": 1})");
  const std::string said = json::parse(running.get("/props").body)["device"]["why"];
  EXPECT_FALSE(why.empty());
  EXPECT_TRUE(said.starts_with(why)) << said;
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
  EXPECT_EQ(server().get("/v1/").status, 404);
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

}  // namespace
}  // namespace prism::server
