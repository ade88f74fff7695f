// Many HTTP clients at once, in one thread: each sends a request, reads the whole answer, hands it
// on and sends the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/http_client.h"

namespace prism::test {

struct LoadRequest {
  std::string method = "POST", path = {}, body = {};
  std::vector<std::string> headers = {};
};

struct LoadAnswer {
  size_t client = 0;
  int64_t number = 0;  // of the client's requests
  ClientReply reply;   // status 0: the connection ended before the whole answer
  bool was_killed = false;
  double first_seconds = 0;  // to the first byte of the body
  double seconds = 0;
};

struct Load {
  std::string address = "127.0.0.1";  // an IPv4 address
  uint16_t port = 0;
  size_t clients = 1;
  // The client's next request. An empty path: the client is finished.
  std::function<LoadRequest(size_t client, int64_t number)> next;
  std::function<void(const LoadAnswer&)> on_answer;
  double kill_every_seconds = 0;  // resets the connection of a client that waits; 0: never
};

// Returns when all clients are finished. Throws std::runtime_error if nothing is received for 60
// seconds, or a client cannot connect.
void run_load(const Load& load);

}  // namespace prism::test
