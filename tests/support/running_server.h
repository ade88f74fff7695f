// A server with a small model on a free port, in a thread of its own.
#pragma once

#include <future>
#include <string>
#include <thread>

#include "server/server.h"
#include "support/http_client.h"

namespace prism::test {

class RunningServer {
 public:
  explicit RunningServer(server::ServerOptions options)
      : server_((options.http.port = 0, std::move(options))), thread_([this] { run(); }) {
    try {
      ready_.get_future().get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~RunningServer() {
    server_.stop(0);
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  // The CPU, f32, and a context of 256 tokens, so that texts are the same everywhere.
  static server::ServerOptions with_model(const std::string& path) {
    server::ServerOptions options;
    options.models = {{"tiny", path}};
    options.load.fit.device = "cpu";
    options.load.fit.context = 256;
    options.load.fit.kv_type = DType::f32;
    options.parallel = 2;
    return options;
  }

  void stop(double grace_seconds) { server_.stop(grace_seconds); }
  uint16_t port() const { return server_.port(); }
  server::EngineState state() const { return server_.state(); }
  size_t connections() const { return server_.connections(); }
  ClientReply post(const std::string& path, const std::string& body,
                   const std::vector<std::string>& lines = {}) const {
    return request(port(), "POST", path, body, lines);
  }
  ClientReply get(const std::string& path, const std::vector<std::string>& lines = {}) const {
    return request(port(), "GET", path, {}, lines);
  }

 private:
  void run() {
    try {
      server_.run([this] { ready_.set_value(); });
    } catch (...) {
      ready_.set_exception(std::current_exception());
    }
  }
  std::promise<void> ready_;  // when the first model is loaded
  server::Server server_;
  std::thread thread_;
};

}  // namespace prism::test
