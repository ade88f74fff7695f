// Tests fields of llama.cpp's server that OpenAI's API does not have, with a small model.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/server/openai_server.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::RunningServer;

class LlamaFields : public test::OpenAiServer {
 protected:
  // The events of a stream of any endpoint, without [DONE].
  static std::vector<json> events(const std::string& path, json body) {
    body["stream"] = true;
    std::vector<json> result;
    for (const std::string& each : test::event_data(server().post(path, body.dump()).body))
      if (each != "[DONE]") result.push_back(json::parse(each));
    return result;
  }
  static json native(int tokens) {
    return {{"prompt", "Once upon a time"}, {"n_predict", tokens}, {"temperature", 0}};
  }
};

TEST_F(LlamaFields, StreamsHaveTimingsOfEachTokenIfAsked) {
  const std::pair<std::string, json> requests[] = {
      {"/v1/completions", once(8)}, {"/v1/chat/completions", chat()}, {"/completion", native(8)}};
  for (const auto& request : requests) {
    const std::string path = request.first;
    json body = request.second;
    SCOPED_TRACE(path);
    const auto timed = [&] {
      std::vector<json> list;
      for (const json& each : events(path, body))
        if (each.contains("timings")) list.push_back(each["timings"]);
      return list;
    };
    EXPECT_EQ(timed().size(), 1u);  // the last event's
    body["timings_per_token"] = true;
    const std::vector<json> timings = timed();
    ASSERT_GT(timings.size(), 4u);
    for (size_t i = 1; i < timings.size(); ++i) {
      EXPECT_GE(timings[i]["predicted_n"], timings[i - 1]["predicted_n"]);
      EXPECT_GE(timings[i]["predicted_ms"], timings[i - 1]["predicted_ms"]);
      EXPECT_EQ(timings[i]["prompt_ms"], timings[0]["prompt_ms"]);
      EXPECT_EQ(timings[i]["prompt_n"], timings[0]["prompt_n"]);
    }
    EXPECT_EQ(timings[0]["predicted_n"], 1);
    EXPECT_LT(timings[0]["predicted_ms"], timings.back()["predicted_ms"]);
    EXPECT_EQ(timings.back()["predicted_n"], path == "/v1/chat/completions" ? 12 : 8);
    body["timings_per_token"] = 3;
    EXPECT_EQ(error(path, body.dump(), 400)["param"], "timings_per_token");
  }
}

TEST_F(LlamaFields, ReportsOfThePromptHaveTimingsIfAsked) {
  int unseen = 0;
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/completion", "/responses"}) {
    SCOPED_TRACE(path);
    const std::string text = fmt::format("Prompt {} is read by no other test.", ++unseen);
    json body = {{"max_tokens", 2}, {"return_progress", true}, {"timings_per_token", true}};
    if (path == std::string("/v1/chat/completions"))
      body["messages"] = json::array({{{"role", "user"}, {"content", text}}});
    else
      body[path == std::string("/responses") ? "input" : "prompt"] = text;
    if (path == std::string("/responses")) body["max_output_tokens"] = 2;
    std::vector<json> reports, deltas;
    for (const json& each : events(path, body)) {
      if (each.contains("prompt_progress")) reports.push_back(each);
      if (each.value("type", "") == "response.output_text.delta") deltas.push_back(each);
    }
    ASSERT_GE(reports.size(), 2u);
    EXPECT_EQ(reports[0]["timings"]["prompt_n"], 0);
    EXPECT_EQ(reports[0]["timings"]["prompt_ms"], 0);
    const json last = reports.back();
    EXPECT_EQ(last["timings"]["prompt_n"], last["prompt_progress"]["total"].get<int>() -
                                               last["prompt_progress"]["cache"].get<int>());
    EXPECT_GT(last["timings"]["prompt_ms"], 0);
    EXPECT_EQ(last["timings"]["predicted_n"], 0);
    if (path == std::string("/responses")) {
      EXPECT_EQ(last["type"], "response.in_progress");
      EXPECT_EQ(last["response"]["status"], "in_progress");
      ASSERT_FALSE(deltas.empty());
      EXPECT_EQ(deltas[0]["timings"]["predicted_n"], 1);
    }
  }
}

TEST_F(LlamaFields, ProbabilitiesAreThoseOfTheSamplers) {
  json body = native(6);
  body["n_probs"] = 40;
  body["post_sampling_probs"] = true;
  for (const json& token : post("/completion", body)["completion_probabilities"]) {
    EXPECT_EQ(token["prob"], 1);  // greedy
    EXPECT_EQ(token["top_probs"].size(), 1u);
    EXPECT_FALSE(token.contains("logprob"));
  }
  body["temperature"] = 1.5;
  body["top_k"] = 7;
  body["top_p"] = 1;
  body["min_p"] = 0;
  body["seed"] = 3;
  const json reply = post("/completion", body);
  ASSERT_EQ(reply["completion_probabilities"].size(), 6u);
  for (const json& token : reply["completion_probabilities"]) {
    ASSERT_EQ(token["top_probs"].size(), 7u);
    double sum = 0, last = 1;
    bool has_token = false;
    for (const json& each : token["top_probs"]) {
      EXPECT_LE(each["prob"], last);
      last = each["prob"];
      sum += last;
      if (each["id"] == token["id"]) has_token = each["prob"] == token["prob"];
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    EXPECT_TRUE(has_token);
  }
  // The model's own probabilities of the same text, in the same proportions at temperature 1.
  body["post_sampling_probs"] = false;
  const json plain = post("/completion", body);
  EXPECT_EQ(plain["content"], reply["content"]);
  const json &own = plain["completion_probabilities"][0]["top_logprobs"],
             &after = reply["completion_probabilities"][0]["top_probs"];
  ASSERT_EQ(own.size(), 40u);
  EXPECT_NEAR(std::log(after[0]["prob"].get<double>() / after[6]["prob"].get<double>()),
              (own[0]["logprob"].get<double>() - own[6]["logprob"].get<double>()) / 1.5, 1e-4);
  // A stream has the same.
  body["post_sampling_probs"] = true;
  json streamed = json::array();
  for (const json& each : events("/completion", body))
    for (const json& token : each.value("completion_probabilities", json::array()))
      streamed.push_back(token);
  EXPECT_EQ(streamed, reply["completion_probabilities"]);
}

TEST_F(LlamaFields, MetricsCountWhatIsComputedBesideTexts) {
  const RunningServer running(RunningServer::with_model(path()));
  const auto counter = [&](const std::string& name) {
    const std::string metrics = running.get("/metrics").body;
    const size_t at = metrics.find("\nllamacpp:" + name + " ");
    return at == std::string::npos ? -1 : std::stod(metrics.substr(at + name.size() + 11));
  };
  EXPECT_EQ(counter("prompt_tokens_total"), 0);
  const json reply =
      json::parse(running.post("/embeddings", R"({"input": ["a cat", "dogs"]})").body);
  const int tokens = reply["usage"]["prompt_tokens"];
  EXPECT_GT(tokens, 4);
  EXPECT_EQ(counter("prompt_tokens_total"), tokens);
  EXPECT_EQ(counter("tokens_predicted_total"), 0);
  EXPECT_GT(counter("prompt_seconds_total"), 0);
  EXPECT_GT(counter("n_decode_total"), 0);
  json body = once(0);
  body["echo"] = true;
  body["logprobs"] = 0;
  EXPECT_EQ(running.post("/v1/completions", body.dump()).status, 200);
  EXPECT_GE(counter("prompt_tokens_total"), tokens + 5);
}

}  // namespace
}  // namespace prism::server
