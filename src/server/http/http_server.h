// An HTTP/1.1 server: one thread parses requests and writes replies and streams for thousands of
// connections. Boost.Beast and Asio, which compile slowly, are hidden in the files of this folder.
//
//   HttpServer server({.port = 8080}, [](HttpRequest request, HttpResponse response) {
//     response.send({.body = "you asked for " + request.path});
//   });
//   server.run();
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/http_message.h"

namespace prism::server {

// The answer to one request. Copies refer to the same answer; any thread may use them while the
// server lives. If the last copy goes before the answer is complete, the client gets status 500,
// or the end of its connection if the answer had begun.
class HttpResponse {
 public:
  struct State;
  explicit HttpResponse(std::shared_ptr<State> state) : state_(std::move(state)) {}

  void send(HttpReply reply) const;  // a whole answer
  // A stream: start, then pieces, then finish. keep_alive: sent while there are no other pieces, so
  // that proxies and clients keep waiting; empty: nothing.
  void start(int status, HttpHeaders headers, std::string keep_alive = {}) const;
  void write(std::string piece) const;
  void finish() const;
  // Starts this stream if nothing else was sent for the time of keep_alive pieces. start() does
  // nothing then.
  void start_when_quiet(int status, HttpHeaders headers, std::string keep_alive) const;
  // Ends the answer: with this reply, or with this piece if a stream has begun.
  void fail(HttpReply reply, std::string last_piece) const;
  // Called once, on the server's thread, if the client goes away or does not read its stream.
  void on_disconnect(std::function<void()> callback) const;

 private:
  std::shared_ptr<State> state_;
};

using HttpHandler = std::function<void(HttpRequest request, HttpResponse response)>;

// A decision on a request whose body was not read yet.
struct HttpCheck {
  std::optional<HttpReply> reply = {};  // sent instead of calling the handler
  HttpHeaders add = {};                 // headers for the answer, whoever gives it
};

struct HttpOptions {
  std::string address = "127.0.0.1";               // an IP address or a host name
  uint16_t port = 8080;                            // 0: a free one
  std::string tls_certificate = {}, tls_key = {};  // files in PEM format; empty: no TLS
  std::function<HttpCheck(const HttpRequest&)> check = {};
  // Writes the errors that the server itself finds, such as a body that is too large. The request
  // has what was read of it so far, maybe nothing. Empty: errors are plain text.
  std::function<HttpReply(const HttpRequest&, int status, const std::string& message)> error = {};

  size_t max_header_bytes = size_t{32} << 10;
  size_t max_body_bytes = size_t{32} << 20;
  size_t max_held_bytes = size_t{512} << 20;  // bodies of all requests together; beyond: 503
  size_t max_connections = 8192;
  // A client that leaves more of its stream unread is disconnected.
  size_t max_unsent_bytes = size_t{1} << 20;
  double header_seconds = 10;  // from the first byte of a request to the end of its header
  double body_seconds = 60;    // for the body
  double idle_seconds = 75;    // between requests
  double write_seconds = 30;   // without any progress while there is something to send
  double quiet_seconds = 10;   // between the keep_alive pieces of a stream
  // On SIGINT and SIGTERM: stop(grace_seconds), and stop(0) on the second signal.
  bool stops_on_signals = false;
  double grace_seconds = 30;
  // Called when the grace is over, a second before the requests that still run are cut off; not
  // without a grace.
  std::function<void()> on_grace_over = {};
};

class HttpServer {
 public:
  // Listens. Throws kIo with the address if it is in use, kInvalidArgument for a wrong certificate,
  // kNotSupported for TLS if Prism was built without it.
  HttpServer(HttpOptions options, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080"
  static bool has_tls();

  void run();  // until it is stopped
  // After run(): closes all connections and tells the handlers. The destructor does the same, but
  // what handlers use may be gone then.
  void close();
  // Any thread may call these.
  // Accepts no further requests, lets the running ones end for this time, then cuts them off.
  void stop(double grace_seconds);
  void post(std::function<void()> work);  // runs it on the server's thread
  size_t connections() const;

 private:
  struct Core;
  std::shared_ptr<Core> core_;
};

}  // namespace prism::server
