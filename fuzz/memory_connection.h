// A connection of the server over memory: bytes in, bytes out, no sockets and no waiting.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/error.hpp>

#include "server/http/connection.h"

namespace prism::server {

class MemoryTransport : public Transport {
 public:
  void handshake(std::function<void(boost::system::error_code)> done) override { done({}); }
  void read(std::span<char> buffer, Done done) override {
    buffer_ = buffer;
    on_read_ = std::move(done);
  }
  void write(std::string_view bytes, Done done) override {
    writing_ = bytes;
    on_written_ = std::move(done);
  }
  void end_writing() override {}
  void close() override { is_closed_ = true; }

  bool is_closed() const { return is_closed_; }
  bool wants_bytes() const { return on_read_ != nullptr; }
  const std::string& output() const { return output_; }

  // Each completes one operation, if there is one.
  size_t put(std::string_view bytes) {  // none: the end of the stream
    if (!on_read_) return 0;
    const size_t count = std::min(bytes.size(), buffer_.size());
    std::copy_n(bytes.data(), count, buffer_.data());
    using boost::asio::error::eof;
    std::exchange(on_read_, {})(count == 0 ? make_error_code(eof) : boost::system::error_code(),
                                count);
    return count;
  }
  bool take(size_t most) {
    if (!on_written_) return false;
    const std::string_view bytes = writing_.substr(0, std::max<size_t>(most, 1));
    output_ += bytes;
    std::exchange(on_written_, {})({}, bytes.size());
    return true;
  }

 private:
  std::span<char> buffer_;
  std::string_view writing_;
  std::string output_;
  Done on_read_, on_written_;
  bool is_closed_ = false;
};

// A connection and its only client.
class MemoryConnection {
 public:
  MemoryConnection(HttpOptions options, HttpHandler handler)
      : owner_(std::make_shared<ConnectionOwner>()) {
    owner_->options = std::move(options);
    owner_->handler = std::move(handler);
    owner_->io = shared_io();
    owner_->on_closed = [](Connection*) {};
    auto transport = std::make_unique<MemoryTransport>();
    transport_ = transport.get();
    connection_ = std::make_shared<Connection>(owner_, std::move(transport), "memory");
    connection_->start();
  }
  ~MemoryConnection() {
    connection_->close();
    while (transport_->put({}) > 0 || transport_->take(1)) {
    }
    (void)transport_->put({});
    run();
  }
  MemoryConnection(const MemoryConnection&) = delete;
  MemoryConnection& operator=(const MemoryConnection&) = delete;

  // Sends a piece and takes what is answered. Returns false if the server reads no more.
  bool send(std::string_view bytes, size_t taken_at_once = 1 << 20) {
    while (!bytes.empty() && !transport_->is_closed() && transport_->wants_bytes()) {
      bytes.remove_prefix(transport_->put(bytes));
      drain(taken_at_once);
    }
    return bytes.empty();
  }
  void drain(size_t taken_at_once = 1 << 20) {
    do run();
    while (transport_->take(taken_at_once));
  }
  void expire() {  // all time limits pass
    connection_->tick(Connection::Clock::time_point::max());
    drain();
  }
  const std::string& output() const { return transport_->output(); }
  size_t held_bytes() const { return owner_->held_bytes; }

 private:
  // One for all connections: to make one takes longer than most requests, and events of another
  // thread that come when a connection has ended are run with those of the next.
  static const std::shared_ptr<boost::asio::io_context>& shared_io() {
    static const auto one = std::make_shared<boost::asio::io_context>(1);
    return one;
  }
  void run() {
    owner_->io->restart();
    owner_->io->poll();
  }
  std::shared_ptr<ConnectionOwner> owner_;
  std::shared_ptr<Connection> connection_;
  MemoryTransport* transport_ = nullptr;  // the connection owns it
};

}  // namespace prism::server
