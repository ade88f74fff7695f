// Tests /search of the server over an index of files.
#include <filesystem>

#include <gtest/gtest.h>

#include "base/json.h"
#include "prism/file_search.h"
#include "support/paths.h"
#include "support/run_program.h"
#include "support/running_server.h"
#include "support/word_embedder.h"

namespace prism::test {
namespace {

class SearchRoute : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model_)) GTEST_SKIP() << "needs " << model_;
    std::filesystem::create_directories(folder_.path() / "files");
    write_file(folder_.path() / "files/garage.txt", "The automobile stands there.\n");
    write_file(folder_.path() / "files/garden.txt", "The rose grows there.\n");
    search::FileIndex::open_or_create(index_).update({folder_ / "files"}, {.embedder = &embedder_});
  }
  server::ServerOptions options() const {
    server::ServerOptions made = RunningServer::with_model(model_);
    made.loads_first = false;
    made.file_index = index_;
    made.load_embedder = [this] {
      return std::make_shared<const search::PassageEmbedder>(embedder_);
    };
    return made;
  }

  TemporaryFolder folder_;
  const std::string index_ = folder_ / "an.index";
  const std::string model_ = (shared_dir() / "models/stories260K.gguf").string();
  const search::PassageEmbedder embedder_ = word_embedder();
};

TEST_F(SearchRoute, FindsByMeaningAndSeesUpdates) {
  const RunningServer server(options());
  ClientReply reply = server.post("/search", R"({"query": "car", "n": 1})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  Json json = Json::parse(reply.body);
  EXPECT_EQ(JsonView(json)["ranking"].string(), "hybrid");
  EXPECT_TRUE(JsonView(json)["results"].items().at(0)["path"].string().ends_with("garage.txt"));
  reply = server.post("/v1/search", R"({"query": "car", "rank": "words"})");
  json = Json::parse(reply.body);
  EXPECT_TRUE(JsonView(json)["results"].items().empty()) << reply.body;
  // Another process updates the index meanwhile.
  write_file(folder_.path() / "files/owl.txt", "An owl at night.\n");
  search::FileIndex::open_or_create(index_).update({folder_ / "files"}, {.embedder = &embedder_});
  reply = server.post("/search", R"({"query": "owl", "rank": "words"})");
  EXPECT_NE(reply.body.find("owl.txt"), std::string::npos) << reply.body;
}

TEST_F(SearchRoute, RefusesWrongRequests) {
  const RunningServer server(options());
  for (const char* body :
       {R"({})", R"({"query": 5})", R"({"query": " "})", R"({"query": "x", "n": 0})",
        R"({"query": "x", "rank": "best"})", R"({"query": "x", "only": "images"})", "no json"})
    EXPECT_EQ(server.post("/search", body).status, 400) << body;
  for (const auto& [field, body] : {std::pair("rank", R"({"query": "x", "rank": "best"})"),
                                    std::pair("only", R"({"query": "x", "only": "images"})"),
                                    std::pair("query", R"({"query": " "})")}) {
    const Json json = Json::parse(server.post("/search", body).body);
    EXPECT_EQ(JsonView(json)["error"]["param"].string(), field);
  }
  EXPECT_EQ(server.get("/search").status, 405);
  server::ServerOptions without = options();
  without.file_index.clear();
  const RunningServer other(std::move(without));
  const ClientReply reply = other.post("/search", R"({"query": "car"})");
  EXPECT_EQ(reply.status, 404);
  EXPECT_NE(reply.body.find("--search"), std::string::npos) << reply.body;
}

}  // namespace
}  // namespace prism::test
