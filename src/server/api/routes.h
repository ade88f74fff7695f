// The list of all paths, and which handler answers each.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "server/api/api.h"

namespace prism::server {

struct Route {
  const char* method;
  const char* path;  // without /v1; one that ends in '*' takes every path that begins with it
  ApiHandler handler;
  enum Flags : uint8_t {
    none = 0,
    open = 1,   // needs no API key
    quick = 2,  // may run on the server's thread: it never waits and computes little
    page = 4,   // belongs to the chat page
  };
  uint8_t flags = none;
};

std::span<const Route> all_routes();

// Returns null with status 404, or 405 if the path has other methods.
const Route* find_route(const HttpRequest& request, int& status);

// Parses the body and calls the route's handler; sends what it throws as an error.
void answer(const Route& route, ApiContext& context, const HttpRequest& request,
            const HttpResponse& response);

// Whether a client of Anthropic's API sent the request: it says so by a header.
bool is_anthropic(const HttpRequest& request);
// Writes an error in the format of the API that the path or the client belongs to; OpenAI's if that
// is not known.
HttpReply error_reply(const HttpRequest& request, const ApiError& error);

}  // namespace prism::server
