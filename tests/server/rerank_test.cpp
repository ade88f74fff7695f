// /rerank through HTTP: the order and the scores of documents, in the formats of Jina and of
// text-embeddings-inference, and errors.
#include <random>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/models/tiny_encoder.h"
#include "support/running_server.h"
#include "support/seed.h"

namespace prism::server {
namespace {

using json = nlohmann::json;
using test::RunningServer;
using test::TinyReranker;

// [CLS] a b [SEP] document [SEP]; the letters begin at token 4.
std::vector<int32_t> pair(const std::string& document) {
  std::vector<int32_t> tokens = {2, 4, 5, 3};
  for (const char c : document)
    if (c != ' ') tokens.push_back(4 + c - 'a');
  tokens.push_back(3);
  return tokens;
}

class RerankRoute : public testing::Test {
 protected:
  json post(const std::string& path, const json& body, int status = 200) const {
    const test::ClientReply reply = server_.post(path, body.dump());
    EXPECT_EQ(reply.status, status) << reply.body;
    return json::parse(reply.body);
  }
  std::string message(const json& body) const {
    return post("/rerank", body, 400)["error"]["message"];
  }
  TinyReranker tiny_;
  const RunningServer server_{RunningServer::with_model(tiny_.write())};
  const std::vector<std::string> documents_ = {"c d", "z", "", "a b c d e f g"};
};

TEST_F(RerankRoute, BestDocumentsComeFirst) {
  const json request = {{"model", "tiny"}, {"query", "a b"}, {"documents", documents_}};
  size_t tokens = 0;
  for (const char* path : {"/rerank", "/v1/rerank", "/v1/reranking"}) {
    const json found = post(path, request);
    EXPECT_EQ(found["object"], "list");
    EXPECT_EQ(found["model"], "tiny");
    ASSERT_EQ(found["results"].size(), 4u);
    tokens = 0;
    double before = 1e9;
    for (const json& each : found["results"]) {
      const std::vector<int32_t> ids = pair(documents_.at(each["index"]));
      tokens += ids.size();
      EXPECT_NEAR(each["relevance_score"], tiny_.score(ids), 1e-3);
      EXPECT_LE(each["relevance_score"], before);
      before = each["relevance_score"];
    }
    EXPECT_EQ(found["usage"]["prompt_tokens"], tokens);
    EXPECT_EQ(found["usage"]["total_tokens"], tokens);
  }
}

// They are scored in pieces.
TEST_F(RerankRoute, ManyDocumentsHaveTheirOwnScores) {
  std::mt19937 random(test_seed());
  std::vector<std::string> documents;
  for (int i = 0; i < 100; ++i) {
    std::string& text = documents.emplace_back();
    for (size_t letters = 1 + random() % 9; letters > 0; --letters)
      text += {static_cast<char>('a' + random() % 26), ' '};
  }
  const json found = post("/rerank", {{"query", "a b"}, {"documents", documents}});
  ASSERT_EQ(found["results"].size(), documents.size());
  size_t tokens = 0;
  for (const json& each : found["results"]) {
    const std::vector<int32_t> ids = pair(documents.at(each["index"]));
    tokens += ids.size();
    EXPECT_NEAR(each["relevance_score"], tiny_.score(ids), 1e-3);
  }
  EXPECT_EQ(found["usage"]["prompt_tokens"], tokens);
}

TEST_F(RerankRoute, TopAndDocuments) {
  const json all = post("/rerank", {{"query", "a b"}, {"documents", documents_}});
  json request = {{"query", "a b"}, {"top_n", 2}, {"return_documents", true}};
  for (const std::string& each : documents_) request["documents"].push_back({{"text", each}});
  const json some = post("/rerank", request);
  ASSERT_EQ(some["results"].size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(some["results"][i]["index"], all["results"][i]["index"]);
    EXPECT_EQ(some["results"][i]["document"]["text"],
              documents_.at(some["results"][i]["index"].get<size_t>()));
  }
  request["top_n"] = 99;
  EXPECT_EQ(post("/rerank", request)["results"].size(), 4u);
}

TEST_F(RerankRoute, TextEmbeddingsInference) {
  const json all = post("/rerank", {{"query", "a b"}, {"documents", documents_}})["results"];
  const json list =
      post("/rerank", {{"query", "a b"}, {"texts", documents_}, {"return_text", true}});
  ASSERT_TRUE(list.is_array());
  ASSERT_EQ(list.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(list[i]["index"], all[i]["index"]);
    EXPECT_EQ(list[i]["score"], all[i]["relevance_score"]);
    EXPECT_EQ(list[i]["text"], documents_.at(list[i]["index"].get<size_t>()));
  }
}

// The context has 64 tokens.
TEST_F(RerankRoute, LongDocumentsAreCut) {
  const std::string longer(300, ' ');
  std::string text;
  for (size_t i = 0; i < longer.size(); ++i) text += "c ";
  const json found = post("/rerank", {{"query", "a b"}, {"documents", {text}}});
  std::vector<int32_t> ids = {2, 4, 5, 3};
  while (ids.size() < 63) ids.push_back(6);
  ids.push_back(3);
  EXPECT_NEAR(found["results"][0]["relevance_score"], tiny_.score(ids), 1e-3);
  EXPECT_EQ(found["usage"]["total_tokens"], 64);
  const json refusal = post("/rerank", {{"query", text}, {"documents", {"a"}}}, 400)["error"];
  EXPECT_NE(refusal["message"].get<std::string>().find("no document fits"), std::string::npos);
  EXPECT_EQ(refusal["param"], "query");
}

TEST_F(RerankRoute, Errors) {
  EXPECT_NE(message({{"documents", {"a"}}}).find("query"), std::string::npos);
  EXPECT_NE(message({{"query", 5}, {"documents", {"a"}}}).find("query"), std::string::npos);
  EXPECT_NE(message({{"query", "a"}}).find("documents"), std::string::npos);
  EXPECT_NE(message({{"query", "a"}, {"documents", json::array()}}).find("empty"),
            std::string::npos);
  EXPECT_NE(message({{"query", "a"}, {"documents", {"b", 7}}}).find("documents[1]"),
            std::string::npos);
  EXPECT_NE(message({{"query", "a"}, {"documents", {"b"}}, {"top_n", 0}}).find("top_n"),
            std::string::npos);
  TinyReranker plain(false);
  const RunningServer other(RunningServer::with_model(plain.write()));
  const test::ClientReply reply =
      other.post("/rerank", json{{"query", "a"}, {"documents", {"b"}}}.dump());
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("no classification head"), std::string::npos) << reply.body;
}

// Without a name the model that can rank is taken.
TEST_F(RerankRoute, ChoosesTheModelWithAHead) {
  TinyReranker plain(false), ranks;
  ServerOptions options = RunningServer::with_model(plain.write());
  options.models.push_back({"ranks", ranks.write()});
  const RunningServer both(std::move(options));
  const json request = {{"query", "a b"}, {"documents", {"c"}}};
  const test::ClientReply reply = both.post("/rerank", request.dump());
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(json::parse(reply.body)["model"], "ranks");
}

}  // namespace
}  // namespace prism::server
