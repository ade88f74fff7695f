// An HTTP server without models on a free port, in a thread of its own.
#pragma once

#include <chrono>
#include <thread>
#include <utility>

#include "server/http/http_server.h"
#include "support/http_client.h"

namespace prism::test {

class RunningHttp {
 public:
  RunningHttp(server::HttpOptions options, server::HttpHandler handler)
      : server((options.port = 0, options.grace_seconds = 0, std::move(options)),
               std::move(handler)),
        thread_([this] { server.run(); }) {}
  ~RunningHttp() {
    server.stop(0);
    thread_.join();
  }
  RunningHttp(const RunningHttp&) = delete;
  RunningHttp& operator=(const RunningHttp&) = delete;

  uint16_t port() const { return server.port(); }
  // Waits until no client is connected; false: some are after 20 seconds.
  bool wait_until_empty() const {
    for (int i = 0; i < 2000 && server.connections() > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return server.connections() == 0;
  }

  server::HttpServer server;

 private:
  std::thread thread_;
};

// Answers with the request.
inline void echo(const server::HttpRequest& request, const server::HttpResponse& response) {
  response.send(
      {200, {}, request.method + " " + request.path + "?" + request.query + " " + request.body});
}

}  // namespace prism::test
