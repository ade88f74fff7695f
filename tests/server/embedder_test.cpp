// Requests for embeddings to a server whose model was trained to chat: another model answers them.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "llm/convert/convert_folder.h"
#include "server/engine/engine_model.h"
#include "support/models/hf_files.h"
#include "support/running_server.h"

namespace prism::server {
namespace {

using json = nlohmann::json;
using test::HfTestFolder;
using test::RunningServer;

class EmbedderOfServer : public testing::Test {
 protected:
  EmbedderOfServer() : chat_(test::hf_model("llama")), bert_(test::hf_model("bert")) {
    llm::convert_folder(chat_.path(), chat_.path("chat.gguf"));
    llm::convert_folder(bert_.path(), bert_.path("bert.gguf"));
  }
  static json post(const RunningServer& server, const std::string& path, const json& body) {
    const test::ClientReply reply = server.post(path, body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body);
  }
  ServerOptions options(const std::string& path) const {
    ServerOptions made = RunningServer::with_model(path);
    made.load.fit.context = 32;
    return made;
  }
  HfTestFolder chat_, bert_;
};

TEST_F(EmbedderOfServer, AnswersInPlaceOfAChatModel) {
  ServerOptions with = options(chat_.path("chat.gguf"));
  with.embedder = {"minilm", bert_.path("bert.gguf")};
  const RunningServer server(std::move(with)), bert(options(bert_.path("bert.gguf")));
  // A text beyond the embedder's 64 tokens is cut; the chat model's context does not count.
  const json request = {{"input", {"%&", std::string(300, '%')}}};
  const json found = post(server, "/v1/embeddings", request);
  EXPECT_EQ(found["model"], "minilm");
  const json alone = post(server, "/v1/embeddings", {{"input", "%&"}});
  EXPECT_EQ(found["usage"]["prompt_tokens"], alone["usage"]["prompt_tokens"].get<int>() + 64)
      << "tokens beyond the cut are not used";
  EXPECT_EQ(found["data"], post(bert, "/v1/embeddings", request)["data"]);
  const json ollama = post(server, "/api/embed", {{"model", "minilm:latest"}, {"input", "%&"}});
  EXPECT_EQ(ollama["model"], "minilm");
  const std::vector<float> one = ollama["embeddings"][0], other = found["data"][0]["embedding"];
  for (size_t i = 0; i < 32; ++i) EXPECT_NEAR(one.at(i), other.at(i), 1e-5);
  // It is no model to chat with.
  const json models = json::parse(server.get("/v1/models").body);
  EXPECT_EQ(models["data"].size(), 1u);
}

TEST_F(EmbedderOfServer, WithoutOneTheChatModelAnswers) {
  const RunningServer server(options(chat_.path("chat.gguf")));
  const json found = post(server, "/v1/embeddings", {{"input", "%&"}, {"model", "minilm"}});
  EXPECT_EQ(found["model"], "tiny");
  EXPECT_EQ(found["data"][0]["embedding"].size(), 32u);
}

// A long request is computed in pieces, so that other requests have steps in between.
TEST_F(EmbedderOfServer, ALongRequestIsTheSameAsManyShortOnes) {
  std::vector<std::string> texts;
  for (int i = 0; i < 150; ++i)
    texts.push_back(std::string(static_cast<size_t>(1 + i * 7 % 20), '%') + "&" +
                    std::string(static_cast<size_t>(i % 5), '%'));
  const std::string path = bert_.path("bert.gguf");
  const auto model = engine_model(llm::LanguageModel::load(path, options(path).load));
  size_t pieces = 0;
  std::vector<std::vector<float>> vectors;
  for (; vectors.size() < texts.size(); ++pieces) {
    const auto some = model->embed(std::span(texts).subspan(vectors.size()), {});
    ASSERT_GT(some.size(), 0u);
    vectors.insert(vectors.end(), some.begin(), some.end());
  }
  EXPECT_GT(pieces, 1u);
  ASSERT_EQ(vectors.size(), texts.size());
  const RunningServer server(options(path));
  const json found = post(server, "/v1/embeddings", {{"input", texts}});
  ASSERT_EQ(found["data"].size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::vector<float> one = found["data"][i]["embedding"];
    const std::vector<float> alone = model->embed(std::span(texts).subspan(i, 1), {}).front();
    for (size_t c = 0; c < one.size(); ++c) {
      ASSERT_NEAR(one[c], alone[c], 1e-5) << i;
      ASSERT_NEAR(vectors[i][c], alone[c], 1e-5) << i;
    }
  }
}

// Also of streams: the error comes before they begin.
TEST_F(EmbedderOfServer, AnEmbeddingModelWritesNoText) {
  const RunningServer bert(options(bert_.path("bert.gguf")));
  const json messages = {{{"role", "user"}, {"content", "%&"}}};
  for (const bool is_streamed : {false, true})
    for (const char* to : {"/v1/completions", "/v1/chat/completions", "/v1/responses",
                           "/v1/messages", "/completion", "/api/generate", "/api/chat"}) {
      json body = {{"stream", is_streamed}, {"max_tokens", 2}};
      body[std::string(to) == "/v1/responses" ? "input" : "messages"] = messages;
      if (std::string(to) != "/v1/responses") body["prompt"] = "%&";
      const test::ClientReply reply = bert.post(to, body.dump());
      EXPECT_EQ(reply.status, 400) << to << reply.body;
      EXPECT_NE(reply.body.find("makes embeddings"), std::string::npos) << to << reply.body;
    }
}

// A model that was trained for embeddings keeps its requests.
TEST_F(EmbedderOfServer, DoesNotReplaceAnEmbeddingModel) {
  ServerOptions with = options(bert_.path("bert.gguf"));
  with.embedder = {"minilm", chat_.path("chat.gguf")};
  const RunningServer server(std::move(with));
  EXPECT_EQ(post(server, "/v1/embeddings", {{"input", "%&"}})["model"], "tiny");
}

TEST_F(EmbedderOfServer, ModelsSayWhatTheyAreFor) {
  ServerOptions with = options(chat_.path("chat.gguf"));
  with.models.push_back({"bert", bert_.path("bert.gguf")});
  const RunningServer server(std::move(with));
  const auto capabilities = [&](const char* model) {
    return post(server, "/api/show", {{"model", model}})["capabilities"];
  };
  EXPECT_EQ(capabilities("tiny")[0], "completion");
  EXPECT_EQ(capabilities("bert"), json{"embedding"});
}

}  // namespace
}  // namespace prism::server
