// A fixture with a small model behind a server, and requests to OpenAI's endpoints.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/models/expected_text.h"
#include "support/running_server.h"

namespace prism::test {

using nlohmann::json;

class OpenAiServer : public testing::Test {
 protected:
  void SetUp() override {
    if (path().empty()) GTEST_SKIP() << "needs ../shared/models/stories260K.gguf";
  }
  static std::string path() { return shared_model("stories260K"); }
  static RunningServer& server() {
    static RunningServer running(RunningServer::with_model(path()));
    return running;
  }
  static json post(const std::string& path, const json& body, int status = 200) {
    const ClientReply reply = server().post(path, body.dump());
    EXPECT_EQ(reply.status, status) << reply.body;
    return json::parse(reply.body, nullptr, false);
  }
  // The JSON of a stream's events; the last one must be [DONE].
  static std::vector<json> stream(const std::string& path, json body) {
    body["stream"] = true;
    const ClientReply reply = server().post(path, body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    std::vector<std::string> data = event_data(reply.body);
    EXPECT_FALSE(data.empty());
    if (data.empty()) return {};
    EXPECT_EQ(data.back(), "[DONE]");
    data.pop_back();
    std::vector<json> events;
    for (const std::string& each : data) events.push_back(json::parse(each));
    return events;
  }
  static json error(const std::string& path, const std::string& body, int status) {
    const ClientReply reply = server().post(path, body);
    EXPECT_EQ(reply.status, status) << reply.body;
    return json::parse(reply.body, nullptr, false)["error"];
  }
  // The text after "Once upon a time" from an independent engine.
  static std::string expected_tail() {
    std::ifstream file(std::string(path()).replace(path().rfind("models/"), std::string::npos,
                                                   "expected/stories260K.once.txt"));
    return std::string{std::istreambuf_iterator<char>(file), {}}.substr(16);
  }
  static json once(int tokens) {
    return {{"prompt", "Once upon a time"}, {"max_tokens", tokens}, {"temperature", 0}};
  }
  static json chat() {
    return {{"messages", json::array({{{"role", "user"}, {"content", "Once upon a time"}}})},
            {"max_tokens", 12},
            {"temperature", 0}};
  }
};

}  // namespace prism::test
