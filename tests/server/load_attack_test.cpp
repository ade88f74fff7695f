// The server under load: many clients at once, clients that are killed, and thousands of requests.
// Every client checks that it got its own text.
//
// Seconds by default; PRISM_ATTACK=100 makes 20,000 requests, and a minute of 64 clients.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/system/open_files.h"
#include "support/attack_rounds.h"
#include "support/run_program.h"
#include "support/running_server.h"
#include "support/server/load_clients.h"
#include "support/server/scripted_model.h"

namespace prism::server {
namespace {

using nlohmann::json;
using test::Load;
using test::LoadAnswer;
using test::LoadRequest;
using test::RunningServer;
using test::Script;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The text of an answer in any of the formats that the clients ask for.
std::string text_of(const LoadAnswer& answer) {
  std::string text;
  const auto add = [&](const json& message) {
    const json& choice = message.contains("choices") ? message["choices"][0] : message;
    const json& holder = choice.contains("delta") ? choice["delta"] : choice;
    for (const char* name : {"text", "content", "response"})
      if (holder.contains(name) && holder[name].is_string())
        text += holder[name].get<std::string>();
  };
  const std::string& body = answer.reply.body;
  if (body.starts_with("data: ")) {
    for (const std::string& each : test::event_data(body))
      if (each != "[DONE]") add(json::parse(each));
  } else if (!body.empty()) {
    add(json::parse(body));
  }
  return text;
}

// A request whose answer depends on the client and the number, in one of four forms.
std::string digits_of(size_t client, int64_t number) {
  return fmt::format("{:03}{:05}", client, number);
}
int64_t tokens_of(size_t client, int64_t number) {
  return 1 + (static_cast<int64_t>(client) * 7 + number) % 20;
}
LoadRequest request_of(size_t client, int64_t number) {
  const std::string prompt = "client " + digits_of(client, number);
  const int64_t tokens = tokens_of(client, number);
  json body = {{"prompt", prompt}, {"max_tokens", tokens}, {"stream", number % 2 == 0}};
  if (number % 4 == 0) {
    body.erase("prompt");
    body["messages"] = json::array({{{"role", "user"}, {"content", prompt}}});
    return {.path = "/v1/chat/completions", .body = body.dump()};
  }
  if (number % 4 == 3) {
    body["options"] = {{"num_predict", tokens}};
    body["raw"] = true;
    return {.path = "/api/generate", .body = body.dump()};
  }
  return {.path = "/v1/completions", .body = body.dump()};
}
bool is_right(const LoadAnswer& answer) {
  return answer.reply.status == 200 &&
         text_of(answer) == test::scripted_answer(digits_of(answer.client, answer.number),
                                                  tokens_of(answer.client, answer.number));
}

bool step_of_a_millisecond() {
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return true;
}

class ServerLoad : public testing::Test {
 protected:
  ServerOptions options(const Script& script) const {
    ServerOptions result = test::scripted_server(tokenizer_, script);
    result.max_queue = 2000;
    return result;
  }
  // The engine has ended every text, and the server has forgotten every client.
  static void expect_empty(const RunningServer& running) {
    const auto begun = Clock::now();
    while (!running.state().texts.empty() && seconds_since(begun) < 20)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(running.state().texts.empty());
    EXPECT_EQ(running.state().texts_failed, 0u);
  }

  test::TemporaryFolder folder_;
  const std::string tokenizer_ = test::write_tokenizer_file(folder_.path());
};

TEST_F(ServerLoad, ClientsAtOnceGetTheirOwnTexts) {
  const double limit = std::min<double>(static_cast<double>(test::attack_rounds(2)), 60);
  const RunningServer running(options({.parallel = 8}));
  const auto begun = Clock::now();
  int64_t answers = 0, wrong = 0;
  test::run_load({.port = running.port(),
                  .clients = 64,
                  .next =
                      [&](size_t client, int64_t number) {
                        return number == 0 || seconds_since(begun) < limit
                                   ? request_of(client, number)
                                   : LoadRequest{};
                      },
                  .on_answer =
                      [&](const LoadAnswer& answer) {
                        ++answers;
                        wrong += !is_right(answer);
                      }});
  std::cout << fmt::format("64 clients for {:.1f} s: {} answers, {} wrong\n", seconds_since(begun),
                           answers, wrong);
  EXPECT_EQ(wrong, 0);
  EXPECT_GE(answers, 64);
  expect_empty(running);
}

TEST_F(ServerLoad, KilledClientsChangeNoOtherText) {
  const int64_t rounds = std::min<int64_t>(test::attack_rounds(6), 300);
  // Steps that take a while, so that killed clients are in the middle of their texts.
  const RunningServer running(options({.parallel = 4, .before_step = step_of_a_millisecond}));
  int64_t answers = 0, wrong = 0, killed = 0;
  test::run_load({.port = running.port(),
                  .clients = 16,
                  .next =
                      [&](size_t client, int64_t number) {
                        return number < rounds ? request_of(client, number) : LoadRequest{};
                      },
                  .on_answer =
                      [&](const LoadAnswer& answer) {
                        ++(answer.was_killed ? killed : answers);
                        wrong += !answer.was_killed && !is_right(answer);
                      },
                  .kill_every_seconds = test::attack_rounds(1) > 1 ? 0.1 : 0.01});
  std::cout << fmt::format("{} answers, {} wrong, {} clients killed\n", answers, wrong, killed);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(killed, 0);
  EXPECT_EQ(answers + killed, 16 * rounds);
  expect_empty(running);
}

// One place, and texts that never end: the last client is answered only if each client before it
// has freed the place, or left the queue.
TEST_F(ServerLoad, ClientThatLeavesFreesItsPlace) {
  const RunningServer running(options({.parallel = 1, .before_step = step_of_a_millisecond}));
  const auto begin = [&](test::HttpClient& client, const char* path, bool is_streamed) {
    const json body = {{"prompt", "1"},
                       {"messages", json::array({{{"role", "user"}, {"content", "1"}}})},
                       {"max_tokens", int64_t{1} << 40},
                       {"options", {{"num_predict", int64_t{1} << 40}}},
                       {"stream", is_streamed}};
    client.send_request("POST", path, body.dump());
  };
  for (const char* path :
       {"/v1/completions", "/v1/chat/completions", "/v1/messages", "/api/generate", "/api/chat"}) {
    SCOPED_TRACE(path);
    test::HttpClient reading(running.port()), whole(running.port()), waiting(running.port());
    begin(reading, path, true);
    EXPECT_EQ(reading.read_head().status, 200);
    EXPECT_FALSE(reading.read_chunk().empty());
    begin(whole, path, false);
    begin(waiting, path, true);
    EXPECT_EQ(waiting.read_head().status, 200);
    waiting.reset();  // in the queue
    reading.close();  // in the middle of its stream
    const json next = {{"prompt", "7"}, {"max_tokens", 3}};
    std::thread leaving([&] {  // when its text runs, or at the latest after a second
      for (int i = 0; i < 1000 && running.state().texts.size() > 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      whole.close();
    });
    const test::ClientReply reply = running.post("/v1/completions", next.dump());
    leaving.join();
    ASSERT_EQ(reply.status, 200);
    EXPECT_EQ(json::parse(reply.body)["choices"][0]["text"], test::scripted_answer("7", 3));
  }
  expect_empty(running);
}

TEST_F(ServerLoad, ThousandStreamsWaitAndHealthAnswers) {
  constexpr size_t kStreams = 1000;
  allow_open_files(2 * kStreams + 200);
  std::atomic<bool> is_held = true;
  const RunningServer running(options(
      {.parallel = 100, .before_step = [&] { return step_of_a_millisecond() && !is_held; }}));
  int64_t wrong = 0;
  std::thread clients([&] {
    test::run_load(
        {.port = running.port(),
         .clients = kStreams,
         .next = [](size_t client,
                    int64_t number) { return number == 0 ? request_of(client, 0) : LoadRequest{}; },
         .on_answer = [&](const LoadAnswer& answer) { wrong += !is_right(answer); }});
  });
  while (running.state().texts.size() < kStreams)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  test::HttpClient client(running.port());
  std::vector<double> milliseconds;
  const int64_t rounds = std::min<int64_t>(test::attack_rounds(200), 5000);
  for (int64_t i = 0; i < rounds; ++i) {
    const auto begun = Clock::now();
    client.send_request("GET", "/health");
    ASSERT_EQ(client.read_reply().status, 200);
    milliseconds.push_back(seconds_since(begun) * 1000);
  }
  EXPECT_EQ(running.state().texts.size(), kStreams);
  is_held = false;
  clients.join();
  std::ranges::sort(milliseconds);
  std::cout << fmt::format(
      "/health beside {} streams: median {:.2f} ms, 99th percentile {:.2f} ms, slowest {:.2f} ms\n",
      kStreams, milliseconds[milliseconds.size() / 2], milliseconds[milliseconds.size() * 99 / 100],
      milliseconds.back());
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(running.state().texts_done, kStreams);
}

int64_t heap_bytes() {
  const struct mallinfo2 heap = mallinfo2();
  return static_cast<int64_t>(heap.uordblks + heap.hblkhd);
}
int64_t resident_bytes() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * 4096;
}

TEST_F(ServerLoad, ManyShortRequestsLeaveNothing) {
  const int64_t requests = test::attack_rounds(200), clients = 10;
  const RunningServer running(options({.parallel = 4}));
  int64_t wrong = 0;
  const auto run = [&](int64_t count) {
    test::run_load({.port = running.port(),
                    .clients = static_cast<size_t>(clients),
                    .next =
                        [&](size_t client, int64_t number) {
                          return number < count / clients ? request_of(client, number)
                                                          : LoadRequest{};
                        },
                    .on_answer = [&](const LoadAnswer& answer) { wrong += !is_right(answer); }});
    expect_empty(running);
    while (running.connections() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  run(100);
  // Buffers grow to their final size at some time, once; a leak shows every time.
  int64_t growth = 0, resident = 0;
  for (int attempt = 0; attempt < 3 && (attempt == 0 || growth > 64 << 10); ++attempt) {
    const int64_t heap = heap_bytes();
    resident = resident_bytes();
    run(requests);
    growth = heap_bytes() - heap;
    std::cout << fmt::format("{} requests: heap {} to {} bytes, resident {} to {}\n", requests,
                             heap, heap + growth, resident, resident_bytes());
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(growth, 64 << 10);
  EXPECT_LE(resident_bytes() - resident, 8 << 20);
}

}  // namespace
}  // namespace prism::server
