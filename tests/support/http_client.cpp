#include "support/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace prism::test {

HttpClient::HttpClient(uint16_t port) {
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("cannot connect to port " + std::to_string(port));
  const timeval limit{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

HttpClient::~HttpClient() { close(); }

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void HttpClient::reset() {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void HttpClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the server has closed; its reply may still be read
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

void HttpClient::send_request(const std::string& method, const std::string& path,
                              const std::string& body, const std::vector<std::string>& lines) {
  std::string text = method + " " + path + " HTTP/1.1\r\nhost: localhost\r\n";
  for (const std::string& each : lines) text += each + "\r\n";
  if (!body.empty()) text += "content-length: " + std::to_string(body.size()) + "\r\n";
  send(text + "\r\n" + body);
}

bool HttpClient::fill() {
  char bytes[65536];
  const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
  if (got <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(got));
  return true;
}

std::string HttpClient::read_line() {
  size_t end = 0;
  while ((end = buffer_.find("\r\n")) == std::string::npos)
    if (!fill()) return {};
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

std::string HttpClient::read_bytes(size_t count) {
  while (buffer_.size() < count && fill()) {
  }
  count = std::min(count, buffer_.size());
  std::string bytes = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return bytes;
}

ClientReply HttpClient::read_head() {
  ClientReply reply;
  const std::string first = read_line();
  if (first.size() < 12) return reply;
  reply.status = std::stoi(first.substr(9, 3));
  for (std::string line; !(line = read_line()).empty();) {
    const size_t colon = line.find(": ");
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    reply.headers[name] = colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return reply;
}

std::string HttpClient::read_chunk() {
  const std::string size = read_line();
  if (size.empty()) return {};
  const std::string chunk = read_bytes(std::stoul(size, nullptr, 16));
  read_bytes(2);
  return chunk;
}

ClientReply HttpClient::read_reply() {
  ClientReply reply = read_head();
  if (reply.headers.contains("content-length")) {
    reply.body = read_bytes(std::stoul(reply.headers["content-length"]));
  } else if (reply.headers.contains("transfer-encoding")) {
    for (std::string chunk; !(chunk = read_chunk()).empty();) reply.body += chunk;
  } else if (reply.status >= 200 && reply.status != 204 && reply.status != 304) {
    while (fill()) {
    }
    reply.body = std::move(buffer_);
    buffer_.clear();
  }
  return reply;
}

bool HttpClient::is_closed() {
  char byte = 0;
  return buffer_.empty() && ::recv(socket_, &byte, 1, 0) == 0;
}

void HttpClient::shrink_receive_buffer() {
  const int bytes = 4096;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

ClientReply request(uint16_t port, const std::string& method, const std::string& path,
                    const std::string& body, const std::vector<std::string>& lines) {
  HttpClient client(port);
  std::vector<std::string> all = lines;
  all.emplace_back("connection: close");
  client.send_request(method, path, body, all);
  return client.read_reply();
}

std::vector<std::string> event_data(std::string_view body) {
  std::vector<std::string> events;
  for (size_t at = 0; (at = body.find("data: ", at)) != body.npos;) {
    const size_t end = body.find("\n\n", at);
    events.emplace_back(body.substr(at + 6, end - at - 6));
    at = end == body.npos ? body.size() : end;
  }
  return events;
}

}  // namespace prism::test
