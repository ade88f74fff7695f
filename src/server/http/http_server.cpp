// Accepts connections, watches their time limits and ends the server.
#include "server/http/http_server.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <unordered_map>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fmt/format.h>

#include "prism/error.h"
#include "server/http/connection.h"

namespace prism::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kLastSecond = std::chrono::seconds(1);
constexpr auto kTick = std::chrono::milliseconds(100);  // the resolution of time limits

tcp::endpoint resolved(asio::io_context& io, const std::string& address, uint16_t port) {
  error_code failed;
  const auto literal = asio::ip::make_address(address, failed);
  if (!failed) return {literal, port};
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(address, std::to_string(port), failed);
  if (failed || found.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("serve: \"{}\" is not an address of this machine: {}", address,
                            failed.message()));
  return found.begin()->endpoint();
}

}  // namespace

struct HttpServer::Core : std::enable_shared_from_this<HttpServer::Core> {
  using Clock = Connection::Clock;

  Core(HttpOptions options, HttpHandler handler)
      : io(std::make_shared<asio::io_context>(1)),
        owner(std::make_shared<ConnectionOwner>()),
        acceptor(*io),
        accept_pause(*io),
        timer(*io),
        signals(*io),
        keeps_running(asio::make_work_guard(*io)) {
    if (!options.tls_certificate.empty() || !options.tls_key.empty())
      tls = tls_context(options.tls_certificate, options.tls_key);
    owner->options = std::move(options);
    owner->handler = std::move(handler);
    owner->io = io;
    owner->on_closed = [this](Connection* connection) { forget(connection); };
    listen();
    if (owner->options.stops_on_signals) {
      signals.add(SIGINT);
      signals.add(SIGTERM);
      wait_for_signal();
    }
    tick();
    accept();
  }

  void listen() {
    const HttpOptions& o = owner->options;
    const tcp::endpoint endpoint = resolved(*io, o.address, o.port);
    error_code failed;
    acceptor.open(endpoint.protocol(), failed);
    if (!failed) acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
    if (!failed) acceptor.bind(endpoint, failed);
    if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
    if (failed == boost::system::errc::address_not_available)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("serve: \"{}\" is not an address of this machine; --host takes one "
                              "that it has, or 0.0.0.0 for all",
                              o.address));
    if (failed)
      throw Error(ErrorCode::kIo,
                  fmt::format("serve: cannot listen on {} port {}: {}; --port takes another port",
                              o.address, o.port, failed.message()));
    port = acceptor.local_endpoint().port();
  }

  void wait_for_signal() {
    if (is_finished) return;
    signals.async_wait([this](error_code failed, int) {
      if (failed) return;
      stop(owner->is_stopping ? 0 : owner->options.grace_seconds);
      wait_for_signal();
    });
  }

  void accept() {
    if (is_accepting || owner->is_stopping) return;
    // One more than the limit is accepted, so that an idle connection is closed only for a new one.
    if (connections.size() > owner->options.max_connections && !close_longest_idle()) return;
    is_accepting = true;
    acceptor.async_accept([this](error_code failed, tcp::socket socket) {
      is_accepting = false;
      if (failed == asio::error::operation_aborted) return;
      if (failed) {
        // Usually too many open files: wait until some are closed.
        accept_pause.expires_after(kTick);
        accept_pause.async_wait([this](error_code) { accept(); });
        return;
      }
      open(std::move(socket));
      accept();
    });
  }

  // Makes room for another connection. Returns false if all of them have work.
  bool close_longest_idle() {
    Connection* longest = nullptr;
    for (const auto& [connection, owned] : connections)
      if (connection->is_idle() && (!longest || connection->idle_since() < longest->idle_since()))
        longest = connection;
    if (longest) longest->close();
    return longest != nullptr;
  }

  void open(tcp::socket socket) {
    error_code failed;
    socket.set_option(tcp::no_delay(true), failed);
    const tcp::endpoint peer = socket.remote_endpoint(failed);
    if (failed) return;  // gone already
    auto transport =
        tls ? tls_transport(std::move(socket), *tls) : plain_transport(std::move(socket));
    const auto connection =
        std::make_shared<Connection>(owner, std::move(transport), peer.address().to_string());
    connections.emplace(connection.get(), connection);
    count = connections.size();
    connection->start();
  }

  void forget(Connection* connection) {
    connections.erase(connection);
    count = connections.size();
    if (owner->is_stopping && connections.empty())
      finish();
    else
      asio::post(*io, [this] { accept(); });
  }

  void tick() {
    if (is_finished) return;
    timer.expires_after(kTick);
    timer.async_wait([this](error_code failed) {
      if (failed) return;
      const auto now = Clock::now();
      if (now > stop_deadline) {
        if (is_last_second) return cut_off();
        is_last_second = true;
        stop_deadline = now + kLastSecond;
        owner->options.on_grace_over();
      }
      for_each_connection([&](Connection& each) { each.tick(now); });
      tick();
    });
  }

  template <typename Work>
  void for_each_connection(Work&& work) {
    std::vector<std::shared_ptr<Connection>> all;
    all.reserve(connections.size());
    for (const auto& [connection, owned] : connections) all.push_back(owned);
    for (const auto& each : all) work(*each);
  }

  void stop(double grace_seconds) {
    if (is_finished) return;
    owner->is_stopping = true;
    is_last_second = is_last_second || grace_seconds <= 0 || !owner->options.on_grace_over;
    error_code ignored;
    acceptor.close(ignored);
    stop_deadline =
        std::min(stop_deadline, Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(grace_seconds)));
    for_each_connection([](Connection& each) {
      if (each.is_idle()) each.close();
    });
    if (connections.empty()) finish();
  }

  void cut_off() {
    for_each_connection([](Connection& each) { each.close(); });
    finish();
  }

  // Ends run() after the work that was posted so far.
  void finish() {
    if (std::exchange(is_finished, true)) return;
    timer.cancel();
    accept_pause.cancel();
    signals.cancel();
    asio::post(*io, [this] { keeps_running.reset(); });
  }

  std::shared_ptr<asio::io_context> io;
  std::shared_ptr<ConnectionOwner> owner;
  std::shared_ptr<TlsContext> tls;
  tcp::acceptor acceptor;
  asio::steady_timer accept_pause, timer;
  asio::signal_set signals;
  asio::executor_work_guard<asio::io_context::executor_type> keeps_running;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections;
  std::atomic<size_t> count = 0;
  Clock::time_point stop_deadline = Clock::time_point::max();
  bool is_accepting = false, is_finished = false, is_last_second = false;
  uint16_t port = 0;
};

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : core_(std::make_shared<Core>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() { close(); }

void HttpServer::close() {
  core_->stop(0);
  core_->cut_off();
  // Pending operations own their connections, which own the queue of operations: run them to their
  // end.
  core_->io->restart();
  core_->io->poll();
}

uint16_t HttpServer::port() const { return core_->port; }

std::string HttpServer::url() const {
  const std::string& address = core_->owner->options.address;
  return fmt::format("{}://{}:{}", core_->tls ? "https" : "http",
                     address.find(':') == address.npos ? address : "[" + address + "]",
                     core_->port);
}

bool HttpServer::has_tls() {
#if PRISM_HAS_TLS
  return true;
#else
  return false;
#endif
}

void HttpServer::run() { core_->io->run(); }

void HttpServer::stop(double grace_seconds) {
  asio::post(*core_->io, [core = core_.get(), grace_seconds] { core->stop(grace_seconds); });
}

void HttpServer::post(std::function<void()> work) { asio::post(*core_->io, std::move(work)); }
size_t HttpServer::connections() const { return core_->count; }

// --- the answer to one request

HttpResponse::State::~State() {
  connection->release(held_bytes);
  // Not dispatch: if the last copy goes on the server's thread, the answer of another thread may
  // still wait in the queue.
  asio::post(connection->io(), [to = connection, id = id] { to->abandon(id); });
}

void HttpResponse::send(HttpReply reply) const {
  asio::dispatch(state_->connection->io(),
                 [to = state_->connection, id = state_->id, reply = std::move(reply)]() mutable {
                   to->send(id, std::move(reply));
                 });
}

void HttpResponse::start(int status, HttpHeaders headers, std::string keep_alive) const {
  asio::dispatch(state_->connection->io(),
                 [to = state_->connection, id = state_->id,
                  head = StreamHead{status, std::move(headers), std::move(keep_alive)}]() mutable {
                   to->start_stream(id, std::move(head));
                 });
}

void HttpResponse::start_when_quiet(int status, HttpHeaders headers, std::string keep_alive) const {
  asio::dispatch(state_->connection->io(),
                 [to = state_->connection, id = state_->id,
                  head = StreamHead{status, std::move(headers), std::move(keep_alive)}]() mutable {
                   to->start_when_quiet(id, std::move(head));
                 });
}

void HttpResponse::fail(HttpReply reply, std::string last_piece) const {
  asio::dispatch(state_->connection->io(),
                 [to = state_->connection, id = state_->id, reply = std::move(reply),
                  last_piece = std::move(last_piece)]() mutable {
                   to->fail(id, std::move(reply), last_piece);
                 });
}

void HttpResponse::write(std::string piece) const {
  // On the server's thread nothing is moved into an operation: this is the way of every token.
  if (Connection& to = *state_->connection; to.io().get_executor().running_in_this_thread())
    return to.write(state_->id, piece);
  asio::post(state_->connection->io(), [to = state_->connection, id = state_->id,
                                        piece = std::move(piece)] { to->write(id, piece); });
}

void HttpResponse::finish() const {
  asio::dispatch(state_->connection->io(),
                 [to = state_->connection, id = state_->id] { to->finish(id); });
}

void HttpResponse::on_disconnect(std::function<void()> callback) const {
  asio::dispatch(state_->connection->io(), [to = state_->connection, id = state_->id,
                                            callback = std::move(callback)]() mutable {
    to->on_disconnect(id, std::move(callback));
  });
}

}  // namespace prism::server
