// Fuzzes the HTTP parser and the state machine of a connection: bytes arrive in pieces over memory,
// and handlers answer at once, as a stream, late or not at all.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "memory_connection.h"

using namespace prism::server;

namespace {

void expect(bool is_right) {
  if (!is_right) __builtin_trap();
}

constexpr size_t kMaxHeader = 512, kMaxBody = 256;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t piece = 1 + data[0], taken = 1 + data[1];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);

  HttpOptions options;
  options.max_header_bytes = kMaxHeader;
  options.max_body_bytes = kMaxBody;
  options.max_held_bytes = 2 * kMaxBody;
  options.max_unsent_bytes = 4096;
  options.check = [](const HttpRequest& request) {
    HttpCheck check;
    if (request.path == "/refused") check.reply = HttpReply{403, {}, "no"};
    return check;
  };
  std::vector<HttpResponse> late;
  size_t handled = 0;
  MemoryConnection client(options, [&](const HttpRequest& request, const HttpResponse& response) {
    ++handled;
    expect(request.path.starts_with('/') && request.body.size() <= kMaxBody);
    for (const unsigned char c : request.path) expect(c >= ' ' && c != 0x7F);
    for (const auto& [name, value] : request.headers)
      expect(value.find_first_of("\r\n") == value.npos && !name.empty());
    if (request.path == "/none") return;
    if (request.path == "/late") return late.push_back(response);
    if (request.path == "/stream") {
      response.start(200, {}, ": waiting\n\n");
      response.write(request.body);
      response.write("more");
      response.finish();
    } else {
      response.send({200, {}, request.body});
    }
  });
  while (!bytes.empty() && client.send(bytes.substr(0, piece), taken))
    bytes.remove_prefix(std::min(piece, bytes.size()));
  for (const HttpResponse& each : late) each.send({200, {}, "late"});
  late.clear();
  client.drain(taken);
  client.expire();
  late.clear();  // of requests that came after the others
  client.drain();
  expect(client.output().empty() || client.output().starts_with("HTTP/1.1 "));
  expect(handled == 0 || !client.output().empty());
  expect(client.held_bytes() == 0);
  return 0;
}
