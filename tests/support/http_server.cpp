// Serves one connection at a time on the loopback interface.
#include "support/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace prism::test {

namespace {

std::string header_of(const std::string& request, const std::string& name) {
  const size_t at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 4;
  return request.substr(begin, request.find("\r\n", begin) - begin);
}

bool send_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool is_connected(int connection) {
  char next = 0;
  return recv(connection, &next, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

}  // namespace

HttpServer::HttpServer() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, plain, bytes) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, plain, &bytes) != 0)
    throw std::runtime_error("no port for the test's HTTP server");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
}

HttpServer::~HttpServer() {
  stop_ = true;
  shutdown(listener_, SHUT_RDWR);  // wakes run()
  thread_.join();
  close(listener_);
}

void HttpServer::serve(const std::string& path, const ServedFile& file) {
  const std::lock_guard lock(mutex_);
  files_[path] = file;
}

void HttpServer::script(const std::string& path, const Script& script) {
  const std::lock_guard lock(mutex_);
  scripts_[path] = std::make_shared<Script>(script);
}

size_t HttpServer::Request::first_byte() const {
  return range.starts_with("bytes=") ? std::stoull(range.substr(6)) : 0;
}

std::string HttpServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + path;
}

std::vector<HttpServer::Request> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::run() {
  while (!stop_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, 50) <= 0) continue;
    const int connection = accept(listener_, nullptr, nullptr);
    if (connection < 0) continue;
    answer(connection);
    shutdown(connection, SHUT_WR);
    close(connection);
  }
}

void HttpServer::answer(int connection) {
  std::string request;
  for (char piece[4096]; request.find("\r\n\r\n") == std::string::npos;) {
    const ssize_t got = recv(connection, piece, sizeof(piece), 0);
    if (got <= 0) return;
    request.append(piece, static_cast<size_t>(got));
  }
  const size_t begin = request.find(' ') + 1;
  const std::string path = request.substr(begin, request.find(' ', begin) - begin);
  const Request seen{path, header_of(request, "Range"), header_of(request, "If-Range"),
                     header_of(request, "Authorization")};
  std::unique_lock lock(mutex_);
  requests_.push_back(seen);
  const auto file = files_.find(path);
  auto script = scripts_.find(path);
  if (script == scripts_.end() && file == files_.end()) script = scripts_.find("*");
  if (script == scripts_.end())
    return answer_file(connection, seen, file == files_.end() ? nullptr : &file->second);
  const std::shared_ptr<Script> run = script->second;
  lock.unlock();  // scripts may take long
  (*run)(seen, [&](std::string_view text) {
    return !stop_ && is_connected(connection) && send_all(connection, text);
  });
}

void HttpServer::answer_file(int connection, const Request& seen, ServedFile* found) {
  if (!found || found->status != 0) {
    const int status = found ? found->status : 404;
    send_all(connection, "HTTP/1.1 " + std::to_string(status) +
                             " No\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone");
    return;
  }
  ServedFile& file = *found;
  if (!file.redirect.empty()) {
    send_all(connection,
             "HTTP/1.1 302 Found\r\nLocation: " + url(file.redirect) +
                 (file.linked_etag.empty() ? "" : "\r\nX-Linked-Etag: " + file.linked_etag) +
                 "\r\nContent-Length: 2\r\nConnection: close\r\n\r\ngo");
    return;
  }
  size_t first = 0, last = file.content.size();  // last: exclusive
  bool is_partial = false;
  const bool is_same = seen.if_range.empty() || seen.if_range == file.etag;
  if (file.has_ranges && is_same && seen.range.starts_with("bytes=")) {
    first = seen.first_byte();
    const std::string end = seen.range.substr(seen.range.find('-') + 1);
    if (!end.empty()) last = std::min<size_t>(last, std::stoull(end) + 1);
    is_partial = true;
  }
  const std::string size = std::to_string(file.content.size());
  if (is_partial && first >= file.content.size()) {
    send_all(connection, "HTTP/1.1 416 No\r\nContent-Range: bytes */" + size +
                             "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    return;
  }
  std::string head = is_partial
                         ? "HTTP/1.1 206 Part\r\nContent-Range: bytes " + std::to_string(first) +
                               "-" + std::to_string(last - 1) + "/" + size + "\r\n"
                         : "HTTP/1.1 200 OK\r\n";
  head += "Content-Length: " + std::to_string(last - first) + "\r\nConnection: close\r\n";
  if (!file.etag.empty()) head += "ETag: " + file.etag + "\r\n";
  std::string_view content = std::string_view(file.content).substr(first, last - first);
  if (!file.cut_after.empty()) {
    content = content.substr(0, file.cut_after.front());
    file.cut_after.erase(file.cut_after.begin());
  }
  sent_ += content.size();
  send_all(connection, head + "\r\n");
  send_all(connection, content);
}

}  // namespace prism::test
