#include "support/server/load_clients.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>

namespace prism::test {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string without_chunks(std::string_view text) {
  std::string body;
  while (!text.empty()) {
    const size_t line = text.find("\r\n");
    const size_t bytes = std::stoul(std::string(text.substr(0, line)), nullptr, 16);
    body += text.substr(line + 2, bytes);
    text.remove_prefix(std::min(line + 4 + bytes, text.size()));
  }
  return body;
}

class LoadClient {
 public:
  LoadClient(const Load& load, size_t index) : load_(load), index_(index) {}
  ~LoadClient() { close(); }
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  int socket() const { return socket_; }
  short events() const { return static_cast<short>(out_.empty() ? POLLIN : POLLIN | POLLOUT); }
  bool is_finished() const { return is_finished_; }

  void begin() {
    const LoadRequest request = load_.next(index_, number_);
    in_.clear();
    head_end_ = 0;
    first_seconds_ = 0;
    if (request.path.empty()) {
      is_finished_ = true;
      return close();
    }
    if (socket_ < 0) connect();
    out_ = request.method + " " + request.path + " HTTP/1.1\r\nhost: " + load_.address + "\r\n";
    for (const std::string& each : request.headers) out_ += each + "\r\n";
    if (!request.body.empty())
      out_ += "content-type: application/json\r\ncontent-length: " +
              std::to_string(request.body.size()) + "\r\n";
    out_ += "\r\n" + request.body;
    begun_ = Clock::now();
    send();
  }

  void send() {
    while (!out_.empty()) {
      const ssize_t sent = ::send(socket_, out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0) return;  // full, or closed, which reading shows
      out_.erase(0, static_cast<size_t>(sent));
    }
  }

  void receive() {
    char bytes[65536];
    const ssize_t got = ::recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) in_.append(bytes, static_cast<size_t>(got));
    if (head_end_ == 0) read_head();
    if (head_end_ > 0 && in_.size() > head_end_ && first_seconds_ == 0)
      first_seconds_ = seconds_since(begun_);
    if (got <= 0)
      end(false);
    else if (is_complete())
      end(true);
  }

  void kill() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    was_killed_ = true;
    end(false);
  }

 private:
  void connect() {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(load_.port);
    ::inet_pton(AF_INET, load_.address.c_str(), &to.sin_addr);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
      throw std::runtime_error("a client cannot connect to port " + std::to_string(load_.port));
  }
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

  void read_head() {
    const size_t end = in_.find("\r\n\r\n");
    if (end == in_.npos) return;
    head_end_ = end + 4;
    reply_ = {};
    reply_.status = std::stoi(in_.substr(9, 3));
    for (size_t at = in_.find("\r\n") + 2; at < end;) {
      const size_t line = in_.find("\r\n", at), colon = in_.find(':', at);
      std::string name = in_.substr(at, colon - at);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
      const size_t value = in_.find_first_not_of(' ', colon + 1);
      reply_.headers[name] = in_.substr(value, line - value);
      at = line + 2;
    }
    is_chunked_ = reply_.headers.contains("transfer-encoding");
    body_bytes_ = reply_.headers.contains("content-length")
                      ? std::stoul(reply_.headers["content-length"])
                      : 0;
  }

  bool is_complete() const {
    if (head_end_ == 0) return false;
    // The texts of these tests have no such line in them.
    return is_chunked_ ? in_.ends_with("\r\n0\r\n\r\n") : in_.size() >= head_end_ + body_bytes_;
  }

  void end(bool is_whole) {
    LoadAnswer answer{.client = index_,
                      .number = number_++,
                      .reply = {},
                      .was_killed = std::exchange(was_killed_, false),
                      .first_seconds = first_seconds_,
                      .seconds = seconds_since(begun_)};
    if (is_whole) {
      answer.reply = std::move(reply_);
      answer.reply.body = is_chunked_ ? without_chunks(std::string_view(in_).substr(head_end_))
                                      : in_.substr(head_end_);
    }
    if (!is_whole || answer.reply.headers["connection"] == "close") close();
    load_.on_answer(answer);
    begin();
  }

  const Load& load_;
  const size_t index_;
  int socket_ = -1;
  int64_t number_ = 0;
  std::string out_, in_;
  size_t head_end_ = 0, body_bytes_ = 0;
  bool is_chunked_ = false, is_finished_ = false, was_killed_ = false;
  ClientReply reply_;
  Clock::time_point begun_;
  double first_seconds_ = 0;
};

}  // namespace

void run_load(const Load& load) {
  std::vector<std::unique_ptr<LoadClient>> clients;
  for (size_t i = 0; i < load.clients; ++i) {
    clients.push_back(std::make_unique<LoadClient>(load, i));
    clients.back()->begin();
  }
  std::vector<pollfd> polled;
  auto last_kill = Clock::now(), last_bytes = last_kill;
  for (size_t killed = 0;;) {
    std::erase_if(clients, [](const auto& each) { return each->is_finished(); });
    if (clients.empty()) return;
    polled.clear();
    for (const auto& each : clients) polled.push_back({each->socket(), each->events(), 0});
    const int ready = ::poll(polled.data(), polled.size(), 20);
    if (ready > 0) last_bytes = Clock::now();
    if (seconds_since(last_bytes) > 60) throw std::runtime_error("no client got a byte for 60 s");
    for (size_t i = 0; ready > 0 && i < polled.size(); ++i) {
      if (polled[i].revents & POLLOUT) clients[i]->send();
      if (polled[i].revents & (POLLIN | POLLHUP | POLLERR)) clients[i]->receive();
    }
    if (load.kill_every_seconds > 0 && seconds_since(last_kill) > load.kill_every_seconds) {
      last_kill = Clock::now();
      if (LoadClient& victim = *clients[++killed % clients.size()]; !victim.is_finished())
        victim.kill();
    }
  }
}

}  // namespace prism::test
