// Connections under TLS by OpenSSL; without OpenSSL, the error that says so.
#include "prism/error.h"
#include "server/http/transport.h"

#if PRISM_HAS_TLS

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl.hpp>

#include <fmt/format.h>

namespace prism::server {

namespace asio = boost::asio;
using boost::system::error_code;

class TlsContext {
 public:
  asio::ssl::context context{asio::ssl::context::tls_server};
};

namespace {

class TlsTransport : public Transport {
 public:
  TlsTransport(asio::ip::tcp::socket socket, asio::ssl::context& context)
      : stream_(std::move(socket), context) {}
  void handshake(std::function<void(error_code)> done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }
  void read(std::span<char> buffer, Done done) override {
    stream_.async_read_some(asio::buffer(buffer.data(), buffer.size()), std::move(done));
  }
  void write(std::string_view bytes, Done done) override {
    stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(done));
  }
  void end_writing() override {
    // The whole shutdown would wait for the client's answer. Clients learn the length of an answer
    // from HTTP, so the end of the TCP stream is enough.
    error_code ignored;
    stream_.next_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  void close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
};

}  // namespace

std::shared_ptr<TlsContext> tls_context(const std::string& certificate, const std::string& key) {
  if (certificate.empty() || key.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("TLS: there is a {} but no {}; https needs both",
                            key.empty() ? "certificate" : "key",
                            key.empty() ? "key (--tls-key)" : "certificate (--tls-cert)"));
  auto result = std::make_shared<TlsContext>();
  asio::ssl::context& context = result->context;
  context.set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv2 |
                      asio::ssl::context::no_sslv3 | asio::ssl::context::no_tlsv1 |
                      asio::ssl::context::no_tlsv1_1);
  error_code failed;
  context.use_certificate_chain_file(certificate, failed);
  if (failed)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("TLS: the certificate \"{}\" cannot be used: {}; it must be a PEM file",
                            certificate, failed.message()));
  context.use_private_key_file(key, asio::ssl::context::pem, failed);
  if (failed)
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("TLS: the key \"{}\" cannot be used: {}; it must be the PEM file of the "
                    "certificate's key",
                    key, failed.message()));
  return result;
}

std::unique_ptr<Transport> tls_transport(asio::ip::tcp::socket socket, TlsContext& context) {
  return std::make_unique<TlsTransport>(std::move(socket), context.context);
}

}  // namespace prism::server

#else

namespace prism::server {

std::shared_ptr<TlsContext> tls_context(const std::string&, const std::string&) {
  throw Error(
      ErrorCode::kNotSupported,
      "TLS: this prism was built without OpenSSL; install libssl-dev and build it again, or "
      "put a reverse proxy in front of it");
}

std::unique_ptr<Transport> tls_transport(boost::asio::ip::tcp::socket socket, TlsContext&) {
  return plain_transport(std::move(socket));
}

}  // namespace prism::server

#endif
