#include "cli/mcp_server.h"

#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>

namespace prism::cli {
namespace {

McpServer server() {
  McpTool twice;
  twice.name = "twice";
  twice.arguments = Json::parse(R"({"type": "object", "properties": {"of": {"type": "integer"}}})");
  twice.call = [](const JsonView& arguments) {
    const int64_t value = 2 * arguments["of"].integer();
    return McpTool::Result{std::to_string(value), Json{{"value", value}}};
  };
  return {"prism", "1.0", "How to use it.", {twice}};
}

std::string told(const std::string& lines) {
  std::istringstream input(lines);
  std::ostringstream output;
  server().run(input, output);
  return output.str();
}

Json answered(const std::string& message) { return server().answer(Json::parse(message)); }

int64_t error_code(const Json& reply) { return JsonView(reply)["error"]["code"].integer(); }

TEST(McpServer, NegotiatesTheVersion) {
  const auto version = [](const std::string& wanted) {
    const Json reply =
        answered(R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":")" +
                 wanted + R"("}})");
    return JsonView(reply)["result"]["protocolVersion"].string();
  };
  EXPECT_EQ(version("2024-11-05"), "2024-11-05");
  EXPECT_EQ(version("1999-01-01"), "2025-11-25");
}

TEST(McpServer, CallsTools) {
  const Json reply = answered(
      R"({"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"twice","arguments":{"of":21}}})");
  const JsonView result = JsonView(reply)["result"];
  EXPECT_EQ(result["content"].items()[0]["text"].string(), "42");
  EXPECT_EQ(result["structuredContent"]["value"].integer(), 42);
  EXPECT_FALSE(result["isError"].boolean());
  EXPECT_EQ(JsonView(reply)["id"].string(), "x");
}

TEST(McpServer, TellsErrorsApart) {
  // The model can mend wrong arguments; an unknown tool is a mistake of the client.
  const Json wrong =
      answered(R"({"id":1,"method":"tools/call","params":{"name":"twice","arguments":{"off":1}}})");
  EXPECT_TRUE(JsonView(wrong)["result"]["isError"].boolean());
  EXPECT_NE(wrong.dump().find("off is not an argument of twice"), std::string::npos)
      << wrong.dump();
  EXPECT_EQ(error_code(answered(R"({"id":1,"method":"tools/call","params":{"name":"thrice"}})")),
            -32602);
  EXPECT_EQ(error_code(answered(R"({"id":1,"method":"tools/call"})")), -32602);
  EXPECT_EQ(error_code(answered(R"({"id":1,"method":"no/such"})")), -32601);
  EXPECT_EQ(error_code(answered(R"({"id":1})")), -32600);
  EXPECT_EQ(error_code(answered(R"({"id":null,"method":"ping"})")), -32600);
  EXPECT_EQ(error_code(answered(R"([])")), -32600);
  EXPECT_TRUE(answered(R"({"method":"notifications/initialized"})").is_null());
  EXPECT_TRUE(answered(R"({"id":1,"result":{}})").is_null());
}

TEST(McpServer, AnswersLinesUntilTheEnd) {
  EXPECT_EQ(told("{\"id\":1,\"method\":\"ping\"}\n\n{\"id\":2,\"method\":\"ping\"}"),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"
            "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
  EXPECT_NE(told("no json\n").find("-32700"), std::string::npos);
  EXPECT_EQ(told(""), "");
}

TEST(McpServer, DoesNotAnswerWhatWasCancelled) {
  // The first call ends after all lines were read.
  class Lines : public std::stringbuf {
   public:
    using std::stringbuf::stringbuf;
    std::atomic<bool> has_ended = false;

   protected:
    int_type underflow() override {
      const int_type next = std::stringbuf::underflow();
      if (next == traits_type::eof()) has_ended = true;
      return next;
    }
  };
  Lines lines(
      "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"wait\"}}\n"
      "{\"id\":2,\"method\":\"ping\"}\n{\"id\":3,\"method\":\"ping\"}\n"
      "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n");
  std::istream input(&lines);
  std::ostringstream output;
  McpServer made = server();
  McpTool wait;
  wait.name = "wait";
  wait.arguments = Json::object();
  wait.call = [&](const JsonView&) {
    while (!lines.has_ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return McpTool::Result{"done", Json::object()};
  };
  made.tools.push_back(wait);
  made.run(input, output);
  EXPECT_NE(output.str().find("\"id\":1"), std::string::npos);
  EXPECT_EQ(output.str().find("\"id\":2"), std::string::npos) << output.str();
  EXPECT_NE(output.str().find("\"id\":3"), std::string::npos);
}

}  // namespace
}  // namespace prism::cli
