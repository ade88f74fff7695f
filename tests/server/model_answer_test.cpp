// Requests that a model answers beside the texts, here embeddings, have the limits of texts.
#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/run_program.h"
#include "support/running_server.h"
#include "support/server/scripted_model.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::RunningServer;

class ModelAnswers : public testing::Test {
 protected:
  // A server whose embeddings wait until is_open_.
  ServerOptions options() {
    ServerOptions result =
        test::scripted_server(tokenizer_, {.parallel = 1, .before_embedding = [this] {
                                             ++pieces_;
                                             is_open_.wait(false);
                                           }});
    result.max_queue = 0;
    return result;
  }
  void open() {
    is_open_ = true;
    is_open_.notify_all();
  }
  template <typename Test>
  static bool wait_until(Test&& is_true) {
    for (int i = 0; i < 2000 && !is_true(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return is_true();
  }
  static bool is_working(const RunningServer& running) {
    const EngineState state = running.state();
    return !state.texts.empty() && state.texts[0].is_begun;
  }
  static void send(test::HttpClient& client, size_t texts) {
    client.send_request("POST", "/v1/embeddings",
                        json{{"input", std::vector<std::string>(texts, "1 2")}}.dump());
  }

  test::TemporaryFolder folder_;
  const std::string tokenizer_ = test::write_tokenizer_file(folder_.path());
  std::atomic<bool> is_open_ = false;
  std::atomic<int> pieces_ = 0;
};

TEST_F(ModelAnswers, AreCountedAndRefusedBeyondTheLimit) {
  const RunningServer running(options());
  test::HttpClient first(running.port());
  send(first, 3);
  ASSERT_TRUE(wait_until([&] { return is_working(running); }));
  const std::string metrics = running.get("/metrics").body;
  EXPECT_NE(metrics.find("\nllamacpp:requests_processing 1\n"), std::string::npos) << metrics;
  EXPECT_EQ(json::parse(running.get("/slots").body)[0]["is_processing"], true);
  for (const char* path : {"/v1/embeddings", "/api/embed", "/v1/completions"}) {
    const test::ClientReply refused = running.post(path, R"({"input": "1", "prompt": "1"})");
    EXPECT_EQ(refused.status, 429) << path << refused.body;
  }
  open();
  const test::ClientReply reply = first.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body)["data"].size(), 3u);
  // The place is free when the client has its answer.
  for (int i = 0; i < 20; ++i) {
    send(first, 1);
    EXPECT_EQ(first.read_reply().status, 200);
  }
}

TEST_F(ModelAnswers, EndWithTheirClient) {
  const RunningServer running(options());
  {
    test::HttpClient client(running.port());
    send(client, 2000);
    ASSERT_TRUE(wait_until([&] { return is_working(running); }));
  }
  ASSERT_TRUE(wait_until([&] { return running.connections() == 0; }));
  EXPECT_EQ(running.get("/health").status, 200);  // after the connection's end was handled
  open();
  EXPECT_TRUE(wait_until([&] { return running.state().texts.empty(); }));
  EXPECT_EQ(pieces_, 1);
}

TEST_F(ModelAnswers, HaveATimeLimit) {
  ServerOptions limited = options();
  limited.timeout_seconds = 0.05;
  const RunningServer running(std::move(limited));
  test::HttpClient client(running.port());
  send(client, 2);
  ASSERT_TRUE(wait_until([&] { return is_working(running); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  open();
  const test::ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 504) << reply.body;
  EXPECT_EQ(json::parse(reply.body)["error"]["code"], "timeout");
}

}  // namespace
}  // namespace prism::server
