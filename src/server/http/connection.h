// One client's connection: reads requests in turn, and writes the answer of each before it begins
// the next.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/http_server.h"
#include "server/http/transport.h"

namespace prism::server {

class Connection;

// What connections need from their server.
struct ConnectionOwner {
  HttpOptions options;
  HttpHandler handler;
  std::shared_ptr<boost::asio::io_context> io;
  bool is_stopping = false;
  std::atomic<size_t> held_bytes = 0;  // of bodies that are read or being answered
  std::function<void(Connection*)> on_closed;
};

// How a stream begins, and what is sent while there are no other pieces.
struct StreamHead {
  int status = 200;
  HttpHeaders headers;
  std::string keep_alive;
};

struct HttpResponse::State {
  State(std::shared_ptr<Connection> of, uint64_t number, size_t held)
      : connection(std::move(of)), id(number), held_bytes(held) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  std::shared_ptr<Connection> connection;
  uint64_t id;
  size_t held_bytes;  // of the request's body
};

// All members run on the server's thread.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  Connection(std::shared_ptr<ConnectionOwner> owner, std::unique_ptr<Transport> transport,
             std::string peer);
  ~Connection();

  void start();
  void tick(Clock::time_point now);  // closes it if a time limit has passed
  void close();                      // at once; tells a handler that its client has gone
  bool is_idle() const;              // between two requests
  Clock::time_point idle_since() const { return last_activity_; }
  // For any thread:
  boost::asio::io_context& io() const { return *owner_->io; }
  void release(size_t held_bytes) { owner_->held_bytes -= held_bytes; }

  // The answer to the request number `id`; ignored if that request is over.
  void send(uint64_t id, HttpReply reply);
  void start_stream(uint64_t id, StreamHead head);
  void start_when_quiet(uint64_t id, StreamHead head);
  void fail(uint64_t id, HttpReply reply, const std::string& last_piece);
  void write(uint64_t id, const std::string& piece);
  void finish(uint64_t id);
  void abandon(uint64_t id);
  void on_disconnect(uint64_t id, std::function<void()> callback);

 private:
  struct Parsing;  // Beast's parser
  enum class State : uint8_t {
    reading,    // a request, or waiting for one
    answering,  // the handler has the request
    lingering,  // everything is sent; waits for the client to close
    closed
  };

  void read();
  void on_read(boost::system::error_code failed, size_t bytes);
  void parse();
  bool copy_header();  // to request_; false: the target is no path
  bool take_header();  // false: the request was refused
  bool is_header_too_large() const;
  bool hold_body();  // false: all bodies together are too large
  void handle();
  HttpReply error(int status, const std::string& message);
  void refuse(HttpReply reply);
  void put_head(int status, const HttpHeaders& headers);
  void put_reply(const HttpReply& reply);
  void flush();
  void end_answer();  // when everything of an answer is in out_
  void next_request();
  bool is_answering(uint64_t id) const { return state_ == State::answering && id == exchange_; }
  void expire_after(double seconds);

  std::shared_ptr<ConnectionOwner> owner_;
  std::unique_ptr<Transport> transport_;
  std::string peer_;
  State state_ = State::reading;
  Clock::time_point deadline_ = Clock::time_point::max();
  Clock::time_point write_deadline_ = Clock::time_point::max();
  Clock::time_point last_activity_ = Clock::now();

  // Reading.
  std::unique_ptr<Parsing> parsing_;
  std::string in_, chunk_;
  size_t header_bytes_ = 0, held_bytes_ = 0;
  bool is_reading_ = false, has_begun_ = false, has_header_ = false;

  // The request that is being answered.
  uint64_t exchange_ = 0;
  HttpRequest request_;
  HttpHeaders added_headers_;
  bool is_head_ = false, keeps_alive_ = true, has_chunks_ = true;
  bool has_started_ = false, is_complete_ = false;
  std::string keep_alive_piece_;
  std::optional<StreamHead> quiet_head_;  // of start_when_quiet()
  std::function<void()> on_disconnect_;

  // Writing.
  std::string out_, writing_;  // not begun; begun, of which written_ bytes are sent
  size_t written_ = 0;
  bool is_writing_ = false;
};

}  // namespace prism::server
