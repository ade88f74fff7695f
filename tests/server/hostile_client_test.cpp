// Hostile clients of the HTTP server: each gets an error or the end of its connection, and the
// server goes on.
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/running_http.h"

namespace prism::server {
namespace {

using test::ClientReply;
using test::echo;
using test::HttpClient;
using test::RunningHttp;
using Clock = std::chrono::steady_clock;

const std::string kPost = "POST / HTTP/1.1\r\nhost: a\r\n";
const std::string kChunked = kPost + "transfer-encoding: chunked\r\n\r\n";

// Sends pieces, and goes on with the last one until the server closes the connection. Returns the
// reply that came before the end.
ClientReply drip(uint16_t port, const std::vector<std::string>& pieces) {
  HttpClient client(port);
  std::atomic<bool> is_over = false;
  std::thread sender([&] {
    for (size_t i = 0; !is_over; i = std::min(i + 1, pieces.size() - 1)) {
      client.send(pieces[i]);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  const auto begun = Clock::now();
  ClientReply reply = client.read_reply();
  EXPECT_LT(Clock::now() - begun, std::chrono::seconds(15)) << "the client gave up, not the server";
  is_over = true;
  sender.join();
  return reply;
}

void expect_alive(const RunningHttp& running) {
  EXPECT_EQ(test::request(running.port(), "GET", "/").status, 200);
}

TEST(HostileClient, DrippingHasOneTimeLimitForAHeaderAndOneForABody) {
  const RunningHttp running({.header_seconds = 0.5, .body_seconds = 0.5}, echo);
  // Whole lines, which a parser uses up at once, and single bytes of every part.
  for (const std::vector<std::string>& pieces :
       std::vector<std::vector<std::string>>{{"GET / HTTP/1.1\r\n", "host: a\r\n", "a: b\r\n"},
                                             {"GET / HTTP/1.1\r\nhost: a\r\nx: ", "y"},
                                             {"G", "E", "T", " ", "/", "x"},
                                             {kPost + "content-length: 1000000\r\n\r\n", "x"},
                                             {kChunked, "1\r\nx\r\n"},
                                             {kChunked + "1;", "e"},
                                             {kChunked + "0\r\n", "a: b\r\n"}}) {
    EXPECT_EQ(drip(running.port(), pieces).status, 408) << pieces[0];
  }
  expect_alive(running);
}

TEST(HostileClient, LargeHeadersAreRefusedHoweverTheyCome) {
  const RunningHttp running({.max_header_bytes = 1000}, echo);
  const auto status = [&](const std::string& begin, const std::string& piece,
                          const std::string& end = {}) {
    HttpClient client(running.port());
    client.send(begin);
    // Each piece arrives alone, so that the parser has used up those before it.
    for (int i = 0; i < 40; ++i) {
      client.send(piece);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    client.send(end);
    return client.read_reply().status;
  };
  const std::string line = "a: " + std::string(48, 'b') + "\r\n";
  EXPECT_EQ(status("GET / HTTP/1.1\r\nhost: a\r\n", line), 431);
  EXPECT_EQ(status("GET /", std::string(50, 'a')), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nhost: a\r\nx: ", std::string(50, 'a')), 431);
  EXPECT_EQ(status(kChunked + "1;", std::string(50, 'e')), 431);  // the extension of a chunk
  EXPECT_EQ(status(kChunked + "0\r\n", line), 431);               // the trailer
  // Many chunks are not a header.
  EXPECT_EQ(status(kChunked, "5;" + std::string(50, 'e') + "\r\nabcde\r\n", "0\r\n\r\n"), 200);
  expect_alive(running);
}

TEST(HostileClient, AnEmptyChunkedBodyMayArriveByteByByte) {
  const RunningHttp running({}, echo);
  HttpClient client(running.port());
  client.send(kChunked);
  for (const char c : std::string("0\r\n\r\n")) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    client.send(std::string(1, c));
  }
  EXPECT_EQ(client.read_reply().status, 200);
  expect_alive(running);
}

TEST(HostileClient, BodiesOfAllClientsTogetherHaveALimit) {
  std::mutex mutex;
  std::vector<HttpResponse> kept;
  const RunningHttp running({.max_body_bytes = 6000, .max_held_bytes = 10000},
                            [&](const HttpRequest& request, const HttpResponse& response) {
                              if (request.path != "/keep") return echo(request, response);
                              const std::lock_guard lock(mutex);
                              kept.push_back(response);
                            });
  HttpClient first(running.port()), half(running.port()), second(running.port());
  first.send_request("POST", "/keep", std::string(5000, 'a'));
  half.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5000\r\n\r\n" + std::string(4000, 'b'));
  ClientReply reply;
  for (int i = 0; i < 1000 && reply.status != 503; ++i)  // until both others have arrived
    reply = test::request(running.port(), "POST", "/", std::string(2000, 'c'));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.headers["retry-after"], "1");
  // Room again when one has left and the other has its answer.
  half.close();
  {
    const std::lock_guard lock(mutex);
    for (const HttpResponse& each : kept) each.send({200, {}, "done"});
    kept.clear();
  }
  EXPECT_EQ(first.read_reply().body, "done");
  for (int i = 0; i < 1000 && reply.status != 200; ++i)
    reply = test::request(running.port(), "POST", "/", std::string(6000, 'c'));
  EXPECT_EQ(reply.status, 200);
}

TEST(HostileClient, RequestsThatTwoParsersCouldReadDifferentlyAreRefused) {
  const RunningHttp running({}, echo);
  const std::string smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
  for (const std::string& text : {
           kPost + "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
           kPost + "transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n0\r\n\r\n",
           kPost + "content-length: 3\r\ncontent-length: 4\r\n\r\nabc",
           kPost + "content-length: +3\r\n\r\nabc",
           kPost + "content-length: 3,4\r\n\r\nabc",
           kPost + "content-length: 0x3\r\n\r\nabc",
           kPost + "content-length : 3\r\n\r\nabc",
           kPost + "content-length:\r\n\r\n",
           kChunked + "-1\r\nabc\r\n0\r\n\r\n",
           kChunked + "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n",
           kChunked + "3\r\nabcd\r\n0\r\n\r\n",
           kChunked + "3\nabc\n0\n\n",
           std::string("POST / HTTP/1.1\nhost: a\n\n"),
       }) {
    HttpClient client(running.port());
    client.send(text + smuggled);
    const ClientReply reply = client.read_reply();
    EXPECT_GE(reply.status, 400) << text;
    EXPECT_EQ(reply.body.find("smuggled"), std::string::npos) << text;
    EXPECT_TRUE(client.is_closed()) << text;
  }
  // A coding that is not known cannot be read: whatever follows is not taken for a request.
  for (const char* coding : {"gzip, chunked", "identity", "chunked, chunked", "xchunked"}) {
    HttpClient client(running.port());
    client.send(kPost + "transfer-encoding: " + coding + "\r\n\r\n0\r\n\r\n" + smuggled);
    const ClientReply reply = client.read_reply();
    EXPECT_TRUE(reply.status == 0 || reply.status >= 400) << coding << " " << reply.body;
    EXPECT_TRUE(client.is_closed()) << coding;
  }
  expect_alive(running);
}

TEST(HostileClient, PathsAreNeverNormalised) {
  const RunningHttp running({}, echo);
  const auto reply = [&](const std::string& target) {
    HttpClient client(running.port());
    client.send("GET " + target + " HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    return client.read_reply();
  };
  for (const char* path : {"/../etc/passwd", "/a/./b", "//a", "/a//", "/..;/a", "/a\\b", "/a;b=c"})
    EXPECT_EQ(reply(path).body, "GET " + std::string(path) + "? ") << path;
  EXPECT_EQ(reply("/%2e%2E/%2f").body, "GET /..//? ");
  EXPECT_EQ(reply("/%252e").body, "GET /%2e? ");  // decoded once
  EXPECT_EQ(reply("/a?b?c#d").body, "GET /a?b?c#d ");
  for (const char* target :
       {"http://a/", "*", "a", "?a", "/%00", "/%0d%0aset-cookie:%20a", "/%7f", "/%", "/%2", "/%g0"})
    EXPECT_EQ(reply(target).status, 400) << target;
}

TEST(HostileClient, MethodsAndVersions) {
  const RunningHttp running({}, echo);
  const auto reply = [&](const std::string& text) {
    HttpClient client(running.port());
    client.send(text);
    return client.read_reply();
  };
  for (const char* method : {"PUT", "DELETE", "TRACE", "CONNECT", "PATCH", "BREW", "get"})
    EXPECT_EQ(
        reply(std::string(method) + " / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").body,
        std::string(method) + " /? ");
  EXPECT_EQ(reply("GET / HTTP/1.0\r\n\r\n").body, "GET /? ");
  for (const char* line : {"GET / HTTP/2.0", "GET / HTTP/0.9", "GET /", "GET  / HTTP/1.1",
                           "GET / HTTP/1.1 ", " GET / HTTP/1.1", "PRI * HTTP/2.0",
                           "\x80 / HTTP/1.1", "GET / http/1.1", "GET / HTTP/1.10"})
    EXPECT_EQ(reply(std::string(line) + "\r\nhost: a\r\n\r\n").status, 400) << line;
}

// A client that leaves after each number of bytes of its request and of its answer.
TEST(HostileClient, DisconnectsAtEveryByte) {
  std::mutex mutex;
  std::vector<std::thread> writers;
  std::atomic<int> gone = 0, asked = 0;
  {
    const RunningHttp running({}, [&](const HttpRequest&, const HttpResponse& response) {
      ++asked;
      response.on_disconnect([&] { ++gone; });
      const std::lock_guard lock(mutex);
      writers.emplace_back([response] {
        response.start(200, {});
        for (int i = 0; i < 20; ++i) response.write("piece");
        response.finish();
      });
    });
    const std::string text = kChunked + "5\r\nabcde\r\n0\r\n\r\n";
    for (size_t bytes = 0; bytes <= text.size(); ++bytes) {
      HttpClient client(running.port());
      client.send(std::string_view(text).substr(0, bytes));
      if (bytes % 3 == 0) client.reset();
    }
    for (int chunks = 0; chunks < 20; ++chunks) {
      HttpClient client(running.port());
      client.send(text);
      EXPECT_EQ(client.read_head().status, 200);
      for (int i = 0; i < chunks; ++i) client.read_chunk();
      if (chunks % 2 == 0) client.reset();
    }
    HttpClient last(running.port());
    last.send(text);
    EXPECT_EQ(last.read_reply().body.size(), 100u);
    last.close();
    EXPECT_TRUE(running.wait_until_empty());
    EXPECT_GE(asked, 21);
  }
  for (std::thread& each : writers) each.join();
}

TEST(HostileClient, ManyPipelinedRequestsAreAnsweredInOrder) {
  const RunningHttp running({}, [](const HttpRequest& request, const HttpResponse& response) {
    response.send({200, {}, request.path});
  });
  constexpr int kCount = 5000;  // more than the server reads ahead
  HttpClient client(running.port());
  std::thread sender([&] {
    std::string all;
    for (int i = 0; i < kCount; ++i)
      all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.send(all);
  });
  int right = 0;
  for (int i = 0; i < kCount; ++i) right += client.read_reply().body == "/" + std::to_string(i);
  EXPECT_EQ(right, kCount);
  sender.join();
}

// Random bytes, and requests with random mistakes.
TEST(HostileClient, NoiseNeverStopsTheServer) {
  const RunningHttp running({.header_seconds = 0.2, .body_seconds = 0.2}, echo);
  std::mt19937 random(20260101);
  const std::string whole = kPost + "content-length: 5\r\n\r\nabcde" + kChunked +
                            "5;a=\"b\"\r\nabcde\r\n0\r\nx: y\r\n\r\n";
  for (int round = 0; round < 300; ++round) {
    std::string text = whole;
    if (round % 3 == 0)
      for (char& c : text) c = static_cast<char>(random());
    for (unsigned i = random() % 4; i > 0; --i)
      text[random() % text.size()] = static_cast<char>(random());
    if (round % 5 == 0) text.erase(random() % text.size(), random() % 20);
    HttpClient client(running.port());
    client.send(text);
    if (round % 2 == 0) client.read_reply();
  }
  // A busy machine may be too slow for the time limits, but not each time.
  int status = 0;
  for (int i = 0; i < 20 && status != 200; ++i)
    status = test::request(running.port(), "GET", "/").status;
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(running.wait_until_empty());
}

}  // namespace
}  // namespace prism::server
