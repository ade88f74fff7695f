// Answers the requests of the Model Context Protocol.
#include "cli/mcp_server.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <istream>
#include <mutex>
#include <ostream>
#include <thread>

#include <fmt/format.h>

#include "base/system/start_thread.h"
#include "prism/error.h"

namespace prism::cli {
namespace {

// https://modelcontextprotocol.io/specification: newest first. Their differences do not concern
// what is used here.
constexpr std::array<std::string_view, 4> kVersions = {"2025-11-25", "2025-06-18", "2025-03-26",
                                                       "2024-11-05"};
enum RpcError {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kNoMethod = -32601,
  kInvalidParams = -32602,
  kInternal = -32603
};
constexpr size_t kMaximumLine = size_t{16} << 20;

struct RpcFailure {
  int code;
  std::string message;
};

Json failure_json(const Json& id, const RpcFailure& failure) {
  return {{"jsonrpc", "2.0"},
          {"id", id},
          {"error", {{"code", failure.code}, {"message", failure.message}}}};
}

Json initialized(const McpServer& server, const JsonView& params) {
  const std::string wanted = params["protocolVersion"].string();
  const bool is_known = std::ranges::find(kVersions, wanted) != kVersions.end();
  Json capabilities = Json::object();
  capabilities["tools"] = Json::object();
  return {{"protocolVersion", is_known ? std::string_view(wanted) : kVersions[0]},
          {"capabilities", capabilities},
          {"serverInfo", {{"name", server.name}, {"version", server.version}}},
          {"instructions", server.instructions}};
}

Json tool_list(const McpServer& server) {
  Json tools = Json::array();
  for (const McpTool& tool : server.tools)
    tools.push_back({{"name", tool.name},
                     {"title", tool.title},
                     {"description", tool.description},
                     {"inputSchema", tool.arguments},
                     {"annotations",
                      {{"title", tool.title}, {"readOnlyHint", true}, {"openWorldHint", false}}}});
  return {{"tools", tools}};
}

Json content_of(const std::string& text) {
  Json content = Json::array();
  content.push_back({{"type", "text"}, {"text", text}});
  return content;
}

// Arguments that the schema does not name are mistakes.
void check_names(const McpTool& tool, const JsonView& arguments) {
  const JsonView known = JsonView(tool.arguments)["properties"];
  for (const auto& [name, value] : arguments.members())
    if (!known.json().find(name)) value.fail(fmt::format("is not an argument of {}", tool.name));
}

Json called(const McpServer& server, const JsonView& params) {
  const std::string name = params["name"].string();
  const auto tool = std::ranges::find(server.tools, name, &McpTool::name);
  if (tool == server.tools.end())
    throw RpcFailure{kInvalidParams, fmt::format("there is no tool {}", name)};
  const Json none = Json::object();
  const JsonView given = params["arguments"];
  if (given && !given.is_object()) given.fail("must be an object");
  try {
    const JsonView arguments(given ? given.json() : none);
    check_names(*tool, arguments);
    McpTool::Result result = tool->call(arguments);
    return {{"content", content_of(result.text)},
            {"structuredContent", std::move(result.structured)},
            {"isError", false}};
  } catch (const Error& error) {
    return {{"content", content_of(error.what())}, {"isError", true}};
  }
}

Json result_of(const McpServer& server, const std::string& method, const JsonView& params) {
  if (method == "initialize") return initialized(server, params);
  if (method == "ping") return Json::object();
  if (method == "tools/list") return tool_list(server);
  if (method == "tools/call") return called(server, params);
  throw RpcFailure{kNoMethod, fmt::format("there is no method {}", method)};
}

// Messages on their way from the reading thread to the answering one.
class Inbox {
 public:
  void put(Json message) {
    const std::lock_guard lock(mutex_);
    const JsonView view(message);
    if (is_cancellation(view)) {
      const std::string id = view["params"]["requestId"].json().dump();
      std::erase_if(waiting_, [&](const Json& each) {
        const Json* const own = each.find("id");
        return own && own->dump() == id;
      });
    } else {
      waiting_.push_back(std::move(message));
    }
    changed_.notify_one();
  }
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_one();
  }
  bool take(Json& message) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has_ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return false;
    message = std::move(waiting_.front());
    waiting_.pop_front();
    return true;
  }

 private:
  static bool is_cancellation(const JsonView& message) {
    if (!message.is_object()) return false;
    const Json* const method = message.json().find("method");
    const Json* const params = message.json().find("params");
    return method && method->is_string() && params && params->is_object() &&
           JsonView(*method).string() == "notifications/cancelled";
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Json> waiting_;
  bool has_ended_ = false;
};

}  // namespace

Json McpServer::answer(const Json& message) const {
  Json id;
  try {
    if (!message.is_object()) throw RpcFailure{kInvalidRequest, "a message must be an object"};
    if (const Json* const own = message.find("id")) id = *own;
    const Json* const method = message.find("method");
    if (!method && (message.find("result") || message.find("error"))) return {};  // of no request
    if (!method || !method->is_string())
      throw RpcFailure{kInvalidRequest, "a request needs a method"};
    if (!message.find("id")) return {};  // notifications change nothing here
    if (!id.is_string() && !id.is_number())
      throw RpcFailure{kInvalidRequest, "the id must be a string or a number"};
    const Json* const params = message.find("params");
    static const Json none = Json::object();
    const Json result =
        result_of(*this, JsonView(*method).string(), JsonView(params ? *params : none, "params"));
    return {{"jsonrpc", "2.0"}, {"id", id}, {"result", result}};
  } catch (const RpcFailure& failure) {
    return failure_json(id, failure);
  } catch (const JsonError& error) {
    return failure_json(id, {kInvalidParams, error.what()});
  } catch (const std::exception& error) {
    return failure_json(id, {kInternal, error.what()});
  }
}

void McpServer::run(std::istream& input, std::ostream& output) const {
  Inbox inbox;
  std::mutex writing;
  const auto send = [&](const Json& message) {
    const std::lock_guard lock(writing);
    output << message.dump() + "\n" << std::flush;
  };
  std::thread reader = start_thread("mcp", [&] {
    for (std::string line; std::getline(input, line);) {
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      try {
        inbox.put(Json::parse(line, {.bytes = kMaximumLine}));
      } catch (const Error& error) {
        send(failure_json(Json(), {kParseError, error.what()}));
      }
    }
    inbox.end();
  });
  for (Json message; inbox.take(message);)
    if (const Json reply = answer(message); !reply.is_null()) send(reply);
  reader.join();
}

}  // namespace prism::cli
