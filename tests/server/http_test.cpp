// Tests the HTTP server: requests in order, streams, limits and hostile clients.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "prism/error.h"
#include "support/running_http.h"

namespace prism::server {
namespace {

using test::ClientReply;
using test::echo;
using test::HttpClient;
using Running = test::RunningHttp;

// Waits for something that another thread does.
class Signal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    is_set_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return is_set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
};

TEST(Http, AddressOfAnotherMachineIsNamed) {
  HttpOptions options;
  options.address = "192.0.2.1";  // reserved for documentation
  options.port = 0;
  try {
    const HttpServer server(std::move(options), echo);
    FAIL() << "it listens";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("\"192.0.2.1\" is not an address of this machine"), message.npos)
        << message;
    EXPECT_EQ(message.find("--port"), message.npos) << message;
  }
}

TEST(Http, AnswersSeveralRequestsOnOneConnection) {
  const Running running({}, echo);
  HttpClient client(running.port());
  for (int i = 0; i < 3; ++i) {
    client.send_request("POST", "/a%20b?x=1&y=%41", "body " + std::to_string(i));
    const ClientReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "POST /a b?x=1&y=%41 body " + std::to_string(i));
  }
}

TEST(Http, PipelinedRequestsAreAnsweredInOrder) {
  // The first answer comes last from the handler.
  std::thread late;
  const Running running({}, [&](const HttpRequest& request, const HttpResponse& response) {
    if (request.path == "/1") {
      late = std::thread([response] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        response.send({200, {}, "one"});
      });
    } else {
      response.send({200, {}, request.path});
    }
  });
  HttpClient client(running.port());
  std::string all;
  for (const char* path : {"/1", "/2", "/3"})
    all += std::string("GET ") + path + " HTTP/1.1\r\nhost: localhost\r\n\r\n";
  client.send(all);
  EXPECT_EQ(client.read_reply().body, "one");
  EXPECT_EQ(client.read_reply().body, "/2");
  EXPECT_EQ(client.read_reply().body, "/3");
  late.join();
}

TEST(Http, RequestsArriveInAnyPieces) {
  const Running running({}, echo);
  HttpClient client(running.port());
  const std::string text =
      "POST /x HTTP/1.1\r\nHost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;extension=1\r\nde\r\n0\r\n\r\n";
  for (const char c : text) client.send(std::string_view(&c, 1));
  EXPECT_EQ(client.read_reply().body, "POST /x? abcde");
}

TEST(Http, HeadAndVersion10) {
  const Running running({}, [](const HttpRequest& request, const HttpResponse& response) {
    if (request.path == "/stream") {
      response.start(200, {});
      response.write("one");
      response.write("two");
      response.finish();
    } else {
      response.send({200, {}, "body"});
    }
  });
  HttpClient client(running.port());
  client.send_request("HEAD", "/");
  EXPECT_EQ(client.read_head().headers["content-length"], "4");
  client.send_request("GET", "/");
  EXPECT_EQ(client.read_reply().body, "body");
  HttpClient old(running.port());
  old.send("GET /stream HTTP/1.0\r\n\r\n");
  const ClientReply reply = old.read_reply();
  EXPECT_EQ(reply.body, "onetwo");
  EXPECT_EQ(reply.headers.count("transfer-encoding"), 0u);
}

TEST(Http, ExpectationsAreMet) {
  const Running running({}, echo);
  HttpClient client(running.port());
  client.send(
      "POST / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  EXPECT_EQ(client.read_head().status, 100);
  client.send("ok");
  EXPECT_EQ(client.read_reply().body, "POST /? ok");
}

TEST(Http, StreamsComeInPieces) {
  constexpr const char* kWaiting = ": waiting\n\n";
  Signal waited;
  std::thread writer;
  const Running running({.quiet_seconds = 0.1},
                        [&](const HttpRequest&, const HttpResponse& response) {
                          writer = std::thread([&waited, response] {
                            response.start(200, {{"content-type", "text/event-stream"}}, kWaiting);
                            response.write("one");
                            waited.wait();
                            response.write("two");
                            response.finish();
                          });
                        });
  HttpClient client(running.port());
  client.send_request("GET", "/");
  EXPECT_EQ(client.read_head().headers["content-type"], "text/event-stream");
  // A busy machine may add signs of life anywhere.
  const auto next = [&] {
    std::string chunk = client.read_chunk();
    while (chunk == kWaiting) chunk = client.read_chunk();
    return chunk;
  };
  EXPECT_EQ(next(), "one");
  EXPECT_EQ(client.read_chunk(), kWaiting);
  waited.set();
  EXPECT_EQ(next(), "two");
  EXPECT_EQ(next(), "");
  writer.join();
}

TEST(Http, StreamsThatWaitBeginWhenItIsQuiet) {
  std::optional<HttpResponse> kept;
  std::mutex mutex;
  const Running running({.quiet_seconds = 0.05},
                        [&](const HttpRequest& request, const HttpResponse& response) {
                          response.start_when_quiet(200, {{"x-of", "stream"}}, ": waiting\n\n");
                          if (request.path == "/soon")
                            return response.fail({503, {}, "an error"}, "a last piece");
                          const std::lock_guard lock(mutex);
                          kept = response;
                        });
  HttpClient client(running.port());
  client.send_request("GET", "/soon");
  const ClientReply soon = client.read_reply();
  EXPECT_EQ(soon.status, 503);
  EXPECT_EQ(soon.body, "an error");
  client.send_request("GET", "/late");
  EXPECT_EQ(client.read_head().headers["x-of"], "stream");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.read_chunk(), ": waiting\n\n");
  const std::lock_guard lock(mutex);
  kept->start(200, {}, "");
  kept->fail({503, {}, "too late"}, "a last piece");
  kept.reset();
  std::string chunk = client.read_chunk();
  while (chunk == ": waiting\n\n") chunk = client.read_chunk();
  EXPECT_EQ(chunk, "a last piece");
  EXPECT_EQ(client.read_chunk(), "");
}

TEST(Http, HandlerLearnsThatItsClientHasGone) {
  Signal asked, gone;
  std::optional<HttpResponse> kept;
  std::mutex mutex;
  {
    const Running running({}, [&](const HttpRequest&, const HttpResponse& response) {
      response.on_disconnect([&] { gone.set(); });
      const std::lock_guard lock(mutex);
      kept = response;
      asked.set();
    });
    HttpClient client(running.port());
    client.send_request("GET", "/");
    ASSERT_TRUE(asked.wait());
    client.close();
    EXPECT_TRUE(gone.wait());
    const std::lock_guard lock(mutex);
    kept->send({200, {}, "too late"});
    kept.reset();
  }
}

TEST(Http, ClientThatDoesNotReadIsDisconnected) {
  Signal gone;
  std::atomic<bool> is_gone = false;
  std::thread writer;
  const Running running({.max_unsent_bytes = 100000},
                        [&](const HttpRequest&, const HttpResponse& response) {
                          response.on_disconnect([&] {
                            is_gone = true;
                            gone.set();
                          });
                          writer = std::thread([&, response] {
                            response.start(200, {});
                            for (int i = 0; i < 2000 && !is_gone; ++i) {
                              response.write(std::string(10000, 'x'));
                              std::this_thread::sleep_for(std::chrono::microseconds(200));
                            }
                          });
                        });
  HttpClient client(running.port());
  client.shrink_receive_buffer();
  client.send_request("GET", "/");
  EXPECT_TRUE(gone.wait());
  writer.join();
}

TEST(Http, OnePieceMayBeLargerThanWhatAClientMayLeaveUnread) {
  const std::string large(std::size_t{8} << 20, 'x');
  const Running running({.max_unsent_bytes = 1000},
                        [&](const HttpRequest&, const HttpResponse& response) {
                          response.start(200, {});
                          response.write(large);
                          response.finish();
                        });
  EXPECT_EQ(test::request(running.port(), "GET", "/").body.size(), large.size());
}

TEST(Http, LostResponsesBecomeErrors) {
  const Running running({}, [](const HttpRequest& request, const HttpResponse& response) {
    if (request.path == "/throw") throw std::runtime_error("x");
    if (request.path == "/begun") response.start(200, {});
  });
  EXPECT_EQ(test::request(running.port(), "GET", "/").status, 500);
  EXPECT_EQ(test::request(running.port(), "GET", "/throw").status, 500);
  HttpClient client(running.port());
  client.send_request("GET", "/begun");
  EXPECT_EQ(client.read_head().status, 200);
  EXPECT_TRUE(client.is_closed());
}

TEST(Http, LimitsHold) {
  const Running running({.max_header_bytes = 1000, .max_body_bytes = 100}, echo);
  const auto status = [&](const std::string& text) {
    HttpClient client(running.port());
    client.send(text);
    return client.read_reply().status;
  };
  EXPECT_EQ(status("GET / HTTP/1.1\r\nhost: a\r\nx: " + std::string(2000, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nhost: a\r\nx: " + std::string(100000, 'x')), 431);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 101\r\n\r\n"), 413);
  EXPECT_EQ(status("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n65\r\n" +
                   std::string(101, 'x') + "\r\n0\r\n\r\n"),
            413);
  EXPECT_EQ(
      status("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n" + std::string(100, 'x')),
      200);
}

TEST(Http, WhatIsNotHttpIsRefused) {
  const Running running({}, echo);
  for (const char* text : {
           "\r\n\r\n\r\n\r\n",
           "GET\r\n\r\n",
           "GET / HTTP/9.9\r\nhost: a\r\n\r\n",
           "GET / HTTP/1.1\r\n\r\n",                        // no host
           "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",  // two hosts
           "GET http://evil/ HTTP/1.1\r\nhost: a\r\n\r\n",
           "GET /%00 HTTP/1.1\r\nhost: a\r\n\r\n",
           "GET /%zz HTTP/1.1\r\nhost: a\r\n\r\n",
           "GET /%a HTTP/1.1\r\nhost: a\r\n\r\n",
           "GET /\x01 HTTP/1.1\r\nhost: a\r\n\r\n",
           "GET / HTTP/1.1\r\nhost : a\r\n\r\n",
           "GET / HTTP/1.1\r\nhost: a\r\n folded\r\n: x\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999999999999\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
           "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: "
           "chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
           "POST / HTTP/1.1\r\nhost: a\r\nexpect: magic\r\ncontent-length: 1\r\n\r\nx",
           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and more bytes of a TLS greeting\r\n\r\n",
       }) {
    HttpClient client(running.port());
    client.send(text);
    const ClientReply reply = client.read_reply();
    EXPECT_GE(reply.status, 400) << text;
    EXPECT_LT(reply.status, 500) << text;
    EXPECT_TRUE(client.is_closed()) << text;
  }
  EXPECT_EQ(test::request(running.port(), "GET", "/").status, 200);
}

TEST(Http, SlowClientsAreCutOff) {
  const Running running({.header_seconds = 1, .body_seconds = 1, .idle_seconds = 1}, echo);
  HttpClient silent(running.port()), slow(running.port()), half(running.port());
  slow.send("GET / HT");
  half.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc");
  EXPECT_TRUE(silent.is_closed());
  for (HttpClient* each : {&slow, &half}) {
    EXPECT_EQ(each->read_reply().status, 408);
    EXPECT_TRUE(each->is_closed());
  }
  EXPECT_EQ(test::request(running.port(), "GET", "/").status, 200);
}

TEST(Http, IdleConnectionsMakeRoomForNewOnes) {
  const Running running({.max_connections = 2}, echo);
  HttpClient first(running.port());
  first.send_request("GET", "/first");
  EXPECT_EQ(first.read_reply().status, 200);
  HttpClient second(running.port()), third(running.port());
  for (HttpClient* each : {&second, &third}) {
    each->send_request("GET", "/");
    EXPECT_EQ(each->read_reply().status, 200);
  }
  EXPECT_TRUE(first.is_closed());
}

TEST(Http, ChecksComeBeforeTheBody) {
  HttpOptions options;
  options.check = [](const HttpRequest& request) {
    HttpCheck check{.reply = {}, .add = {{"x-added", "yes"}}};
    if (request.path != "/right") check.reply = HttpReply{403, {}, "no"};
    return check;
  };
  const Running running(std::move(options), echo);
  HttpClient client(running.port());
  client.send(
      "POST /wrong HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 1000\r\n\r\n");
  ClientReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 403);
  EXPECT_EQ(reply.headers["x-added"], "yes");
  EXPECT_TRUE(client.is_closed());
  reply = test::request(running.port(), "GET", "/right");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.headers["x-added"], "yes");
}

TEST(Http, StopsAfterTheRunningRequest) {
  Signal asked;
  std::mutex mutex;
  std::optional<HttpResponse> kept;
  HttpServer server({.port = 0}, [&](const HttpRequest&, const HttpResponse& response) {
    const std::lock_guard lock(mutex);
    kept = response;
    asked.set();
  });
  std::thread thread([&] { server.run(); });
  HttpClient idle(server.port()), busy(server.port());
  busy.send_request("GET", "/");
  ASSERT_TRUE(asked.wait());
  server.stop(20);
  EXPECT_TRUE(idle.is_closed());
  EXPECT_THROW(HttpClient(server.port()), std::runtime_error);
  {
    const std::lock_guard lock(mutex);
    kept->send({200, {}, "done"});
    kept.reset();
  }
  EXPECT_EQ(busy.read_reply().body, "done");
  busy.close();
  thread.join();
}

TEST(Http, CutsOffRequestsAfterTheGrace) {
  Signal asked, gone;
  std::mutex mutex;
  std::optional<HttpResponse> kept;
  HttpServer server({.port = 0}, [&](const HttpRequest&, const HttpResponse& response) {
    response.on_disconnect([&] { gone.set(); });
    const std::lock_guard lock(mutex);
    kept = response;
    asked.set();
  });
  std::thread thread([&] { server.run(); });
  HttpClient busy(server.port());
  busy.send_request("GET", "/");
  ASSERT_TRUE(asked.wait());
  server.stop(0.2);
  EXPECT_TRUE(gone.wait());
  EXPECT_TRUE(busy.is_closed());
  thread.join();
  const std::lock_guard lock(mutex);
  kept.reset();
}

TEST(Http, UsedPortIsNamed) {
  const Running running({}, echo);
  try {
    HttpServer({.port = running.port()}, echo);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_NE(std::string(error.what()).find(std::to_string(running.port())), std::string::npos);
  }
}

}  // namespace
}  // namespace prism::server
