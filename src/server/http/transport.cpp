// Plain TCP connections.
#include "server/http/transport.h"

#include <boost/asio/buffer.hpp>

namespace prism::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class PlainTransport : public Transport {
 public:
  explicit PlainTransport(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
    error_code failed;
    socket_.non_blocking(true, failed);
    can_try_ = !failed;
  }
  void handshake(std::function<void(error_code)> done) override { done({}); }
  void read(std::span<char> buffer, Done done) override {
    socket_.async_read_some(asio::buffer(buffer.data(), buffer.size()), std::move(done));
  }
  void write(std::string_view bytes, Done done) override {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(done));
  }
  size_t write_at_once(std::string_view bytes) override {
    if (!can_try_) return 0;
    error_code failed;
    const size_t count = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), failed);
    return failed ? 0 : count;
  }
  void end_writing() override {
    error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  asio::ip::tcp::socket socket_;
  bool can_try_ = false;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(asio::ip::tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

}  // namespace prism::server
