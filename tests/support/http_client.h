// A small HTTP client for tests of the server: whole replies, streams, and bytes that no proper
// client would send.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace prism::test {

struct ClientReply {
  int status = 0;                              // 0: the connection ended before a reply
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// One connection to 127.0.0.1. Waits at most 20 seconds for bytes.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void send(std::string_view bytes);  // as they are
  // Sends a request with the headers that HTTP needs, and these lines.
  void send_request(const std::string& method, const std::string& path,
                    const std::string& body = {}, const std::vector<std::string>& lines = {});
  ClientReply read_reply();  // the next one; its whole body, also of a stream
  ClientReply read_head();   // without the body
  std::string read_chunk();  // the next piece of a stream; empty: the end
  bool is_closed();          // waits for the end; false if other bytes come or none do
  void close();
  void reset();  // closes with an error for the server instead of the end of the stream
  void shrink_receive_buffer();  // before connecting is over, to fill buffers early

 private:
  bool fill();
  std::string read_line();
  std::string read_bytes(size_t count);
  int socket_ = -1;
  std::string buffer_;
};

// One request on a connection of its own.
ClientReply request(uint16_t port, const std::string& method, const std::string& path,
                    const std::string& body = {}, const std::vector<std::string>& lines = {});

// The "data:" lines of server-sent events.
std::vector<std::string> event_data(std::string_view body);

}  // namespace prism::test
