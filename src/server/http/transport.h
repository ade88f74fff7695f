// The bytes of one connection: a TCP socket, plain or under TLS.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>

namespace prism::server {

// Not thread-safe: all calls and callbacks are on the server's thread. One read and one write may
// be under way. Buffers must live until the callback.
class Transport {
 public:
  using Done = std::function<void(boost::system::error_code, size_t bytes)>;
  virtual ~Transport() = default;
  virtual void handshake(std::function<void(boost::system::error_code)> done) = 0;
  virtual void read(std::span<char> buffer, Done done) = 0;   // at least one byte
  virtual void write(std::string_view bytes, Done done) = 0;  // at least one byte
  // Writes what the system takes at once, while no write is under way. Returns the number of bytes,
  // 0 also for an error, which the next write reports.
  virtual size_t write_at_once(std::string_view) { return 0; }
  virtual void end_writing() = 0;  // the client sees the end; reading goes on
  virtual void close() = 0;        // ends reads and writes with an error
};

std::unique_ptr<Transport> plain_transport(boost::asio::ip::tcp::socket socket);

class TlsContext;
// Throws kInvalidArgument for files that are wrong, kNotSupported if Prism was built without TLS.
std::shared_ptr<TlsContext> tls_context(const std::string& certificate, const std::string& key);
std::unique_ptr<Transport> tls_transport(boost::asio::ip::tcp::socket socket, TlsContext& context);

}  // namespace prism::server
