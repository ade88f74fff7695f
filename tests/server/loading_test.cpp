// A server whose first model is still being loaded.
#include <atomic>
#include <future>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "prism/error.h"
#include "support/run_program.h"
#include "support/running_server.h"
#include "support/server/scripted_model.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::RunningServer;

// Something that begins, and goes on when the test lets it.
struct Stage {
  void pass() {
    begun = true;
    begun.notify_all();
    is_open.wait(false);
  }
  void open() {
    is_open = true;
    is_open.notify_all();
  }
  std::atomic<bool> begun = false, is_open = false;
};

class Loading : public testing::Test {
 protected:
  ServerOptions options() {
    ServerOptions result = test::scripted_server(tokenizer_, {});
    result.http.port = 0;
    result.load_model = [this](const ServedModel&) {
      loading_.pass();
      if (fails_) throw Error(ErrorCode::kOutOfMemory, "a model too large");
      return test::scripted_model({});
    };
    return result;
  }
  // Runs the server until it ends; the result is its failure.
  std::future<void> run(Server& server) {
    return std::async(std::launch::async, [&] { server.run([this] { is_ready_ = true; }); });
  }

  test::TemporaryFolder folder_;
  const std::string tokenizer_ = test::write_tokenizer_file(folder_.path());
  Stage loading_;
  bool fails_ = false;
  std::atomic<bool> is_ready_ = false;
};

TEST_F(Loading, HealthAnswersAndRequestsWait) {
  Server server(options());
  const std::future<void> end = run(server);
  loading_.begun.wait(false);
  const test::ClientReply health = test::request(server.port(), "GET", "/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(json::parse(health.body)["error"]["message"], "Loading model");
  EXPECT_EQ(test::request(server.port(), "GET", "/v1/models").status, 200);
  test::HttpClient client(server.port());
  client.send_request("POST", "/v1/completions", R"({"prompt": "12", "max_tokens": 3})");
  EXPECT_FALSE(is_ready_);
  loading_.open();
  const test::ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(json::parse(reply.body)["choices"][0]["text"], test::scripted_answer("12", 3));
  EXPECT_TRUE(is_ready_);
  EXPECT_EQ(test::request(server.port(), "GET", "/health").status, 200);
  server.stop(0);
}

constexpr const char* kStream = R"({"prompt": "12", "max_tokens": 3, "stream": true})";
constexpr const char* kWaiting = ": waiting\n\n";

TEST_F(Loading, StreamsGetSignsOfLife) {
  ServerOptions with = options();
  with.http.quiet_seconds = 0.05;
  with.loads_first = false;
  const RunningServer running(std::move(with));
  test::HttpClient client(running.port());
  client.send_request("POST", "/v1/completions", kStream);
  EXPECT_EQ(client.read_head().headers["content-type"], "text/event-stream");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.read_chunk(), kWaiting);
  loading_.open();
  std::string body;
  for (std::string chunk; !(chunk = client.read_chunk()).empty();) body += chunk;
  std::string text;
  for (const std::string& each : test::event_data(body))
    if (each != "[DONE]")
      if (const json event = json::parse(each); !event["choices"].empty())
        text += event["choices"][0]["text"].get<std::string>();
  EXPECT_EQ(text, test::scripted_answer("12", 3));
}

TEST_F(Loading, StreamsTellItsFailure) {
  fails_ = true;
  ServerOptions with = options();
  with.http.quiet_seconds = 0.05;
  with.loads_first = false;
  const RunningServer running(std::move(with));
  test::HttpClient client(running.port());
  client.send_request("POST", "/v1/completions", kStream);
  EXPECT_EQ(client.read_head().status, 200);
  EXPECT_EQ(client.read_chunk(), kWaiting);
  loading_.open();
  std::string body;
  for (std::string chunk; !(chunk = client.read_chunk()).empty();) body += chunk;
  EXPECT_NE(body.find("a model too large"), std::string::npos) << body;
  // Known soon, it is a status.
  with = options();
  with.loads_first = false;
  EXPECT_EQ(RunningServer(std::move(with)).post("/v1/completions", kStream).status, 503);
}

TEST_F(Loading, ThatFailsEndsTheServer) {
  fails_ = true;
  Server server(options());
  std::future<void> end = run(server);
  loading_.open();
  EXPECT_THROW(end.get(), Error);
  EXPECT_FALSE(is_ready_);
}

// However long the model takes to fail again.
TEST_F(Loading, ThatFailsEndsWaitingRequestsWithItsError) {
  ServerOptions with = options();
  with.http.quiet_seconds = 0.05;
  with.load_model = [this, loads = 0](const ServedModel&) mutable -> std::unique_ptr<EngineModel> {
    if (++loads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    loading_.pass();
    throw Error(ErrorCode::kOutOfMemory, "a model too large");
  };
  Server server(std::move(with));
  std::future<void> end = run(server);
  test::HttpClient client(server.port());
  client.send_request("POST", "/v1/completions", kStream);
  EXPECT_EQ(client.read_head().status, 200);  // it waits
  loading_.open();
  std::string body;
  for (std::string chunk; !(chunk = client.read_chunk()).empty();) body += chunk;
  EXPECT_NE(body.find("a model too large"), std::string::npos) << body;
  client.close();
  EXPECT_THROW(end.get(), Error);
}

}  // namespace
}  // namespace prism::server
