// Ollama's API beyond what its client tests: the server's limit of tokens.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace prism::server
