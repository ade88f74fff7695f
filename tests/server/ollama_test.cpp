// Ollama's API beyond what its client tests: the server's limit of tokens, texts to embed that are
// too long or absent, and how long a model stays loaded.
#include <thread>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/server/openai_server.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::ClientReply;
using test::RunningServer;
using OllamaRoute = test::OpenAiServer;

json reply_to(const RunningServer& server, const std::string& to, const json& body,
              int status = 200) {
  const ClientReply reply = server.post(to, body.dump());
  EXPECT_EQ(reply.status, status) << to << reply.body;
  return json::parse(reply.body, nullptr, false);
}

// `prism serve -n`: a request that gives no limit has that of the server, in every API.
TEST_F(OllamaRoute, TheServersLimitHoldsWhereNoneIsGiven) {
  ServerOptions options = RunningServer::with_model(path());
  options.generation = [](const llm::GgufFile&) {
    llm::GenerationOptions made{.max_tokens = 3};
    made.sampler.temperature = 0;
    made.ignore_end = true;
    return made;
  };
  const RunningServer running(std::move(options));
  const auto count = [&](const std::string& to, const json& more = json::object()) {
    json body = {{"stream", false}};
    if (to == "/v1/responses")
      body["input"] = "Once";
    else if (to.ends_with("/chat") || to.ends_with("/chat/completions"))
      body["messages"] = chat()["messages"];
    else
      body["prompt"] = "Once";
    body.update(more);
    return reply_to(running, to, body);
  };
  EXPECT_EQ(count("/api/generate")["eval_count"], 3);
  EXPECT_EQ(count("/api/chat")["eval_count"], 3);
  EXPECT_EQ(count("/v1/chat/completions")["usage"]["completion_tokens"], 3);
  EXPECT_EQ(count("/v1/completions")["usage"]["completion_tokens"], 3);
  EXPECT_EQ(count("/v1/responses")["usage"]["output_tokens"], 3);
  EXPECT_EQ(count("/completion")["tokens_predicted"], 3);
  const json five = {{"options", {{"num_predict", 5}}}};
  EXPECT_EQ(count("/api/generate", five)["eval_count"], 5);
  EXPECT_EQ(count("/api/chat", five)["eval_count"], 5);
  const json all = {{"options", {{"num_predict", -1}}}};
  EXPECT_GT(count("/api/generate", all)["eval_count"], 200) << "to the end of the context";
}

// The context has 256 tokens.
TEST_F(OllamaRoute, LongTextsToEmbedAreCut) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += "Once upon a time ";
  const auto embed = [&](json body, int status = 200) {
    return reply_to(server(), "/api/embed", body, status);
  };
  const json cut = embed({{"input", {text, text + "there was a cat.", "Once"}}});
  EXPECT_EQ(cut["embeddings"][0], cut["embeddings"][1]);
  EXPECT_NE(cut["embeddings"][0], cut["embeddings"][2]);
  EXPECT_EQ(embed({{"input", text}, {"truncate", true}})["prompt_eval_count"], 256);
  const std::string refusal = embed({{"input", {"Once", text}}, {"truncate", false}}, 400)["error"];
  EXPECT_TRUE(refusal.starts_with("input[1]: ")) << refusal;
  EXPECT_NE(refusal.find("256"), std::string::npos) << refusal;
  EXPECT_FALSE(embed({{"input", "Once"}, {"truncate", false}})["embeddings"].empty());
  embed({{"input", "Once"}, {"truncate", "yes"}}, 400);
  // OpenAI's API cuts nothing.
  const json single = error("/v1/embeddings", json{{"input", text}}.dump(), 400);
  EXPECT_EQ(single["param"], "input");
  EXPECT_EQ(single["code"], "context_length_exceeded");
  const json second = error("/v1/embeddings", json{{"input", {"Once", text}}}.dump(), 400);
  EXPECT_EQ(second["param"], "input[1]");
  EXPECT_EQ(second["n_ctx"], 256);
}

// As Ollama's clients do to load a model, or to unload it.
TEST_F(OllamaRoute, NoTextsToEmbedAreNoError) {
  const RunningServer running(RunningServer::with_model(path()));
  for (const json& none : {json::array(), json("")}) {
    const json reply = reply_to(running, "/api/embed", {{"input", none}});
    EXPECT_EQ(reply["embeddings"], json::array());
    EXPECT_EQ(reply["model"], "tiny");
  }
  EXPECT_EQ(reply_to(running, "/api/embeddings", {{"prompt", ""}})["embedding"], json::array());
  EXPECT_EQ(running.state().models.size(), 1u);
  reply_to(running, "/api/embed", {{"input", json::array()}, {"keep_alive", 0}});
  while (!running.state().models.empty()) std::this_thread::yield();
  reply_to(running, "/api/embed", json::object(), 400);
  EXPECT_EQ(error("/v1/embeddings", R"({"input":["a",""]})", 400)["param"], "input[1]");
}

TEST_F(OllamaRoute, TimesToStayLoadedHaveADate) {
  const RunningServer running(RunningServer::with_model(path()));
  for (const json& time : {json(1e300), json("999999999h"), json("1e300h"), json(-1), json(600)}) {
    reply_to(running, "/api/generate", {{"keep_alive", time}});
    const std::string date = json::parse(running.get("/api/ps").body)["models"][0]["expires_at"];
    EXPECT_EQ(date.size(), 20u) << time << ": " << date;
    EXPECT_GT(date, "2026") << time;
  }
  for (const char* wrong : {"nan", "inf", "5m-3s", "", "-", "m"})
    reply_to(running, "/api/generate", {{"keep_alive", wrong}}, 400);
}

// A folder may hold a file that is no model.
TEST_F(OllamaRoute, FilesThatCannotBeReadAreLeftOut) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "broken.gguf", "no model");
  ServerOptions options = RunningServer::with_model(path());
  options.models.push_back({"broken", folder / "broken.gguf"});
  const RunningServer running(std::move(options));
  const json models = json::parse(running.get("/api/tags").body)["models"];
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0]["name"], "tiny");
  reply_to(running, "/api/show", {{"model", "broken"}}, 500);
  // Which of them ranks texts?
  const json refusal = reply_to(running, "/rerank", {{"query", "a"}, {"documents", {"b"}}}, 400);
  EXPECT_NE(refusal["error"]["message"].get<std::string>().find("\"tiny\""), std::string::npos);
}

TEST_F(OllamaRoute, Think) {
  const json body = {{"prompt", "Once"}, {"stream", false}, {"options", {{"num_predict", 1}}}};
  for (const json& think : {json(true), json(false), json("low"), json("high")}) {
    json with = body;
    with["think"] = think;
    reply_to(server(), "/api/generate", with);
  }
  json wrong = body;
  wrong["think"] = "a bit";
  const std::string refusal = reply_to(server(), "/api/generate", wrong, 400)["error"];
  EXPECT_TRUE(refusal.starts_with("think is")) << refusal;
}

}  // namespace
}  // namespace prism::server
