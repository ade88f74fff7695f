// Roles of messages and limits of tokens that an API does not know.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/server/openai_server.h"

namespace prism::server {
namespace {

using nlohmann::json;

class Roles : public test::OpenAiServer {
 protected:
  // A conversation whose second message has this role.
  static json with(const std::string& role, const char* list = "messages") {
    return {{list, {{{"role", "user"}, {"content", "Once"}}, {{"role", role}, {"content", "Tom"}}}},
            {"max_tokens", 1},
            {"max_output_tokens", 1},
            {"stream", false},
            {"options", {{"num_predict", 1}}}};
  }
  static std::string message(const json& reply) {
    const json& refusal = reply["error"];
    return refusal.is_string() ? refusal.get<std::string>() : refusal.value("message", "");
  }
};

TEST_F(Roles, OfEachApi) {
  const std::vector<std::string> all = {"system", "developer", "user",    "assistant",
                                        "tool",   "function",  "ipython", "asistant",
                                        "User",   "",          "'"};
  const auto check = [&](const std::string& to, size_t known, std::vector<std::string> also = {},
                         const char* list = "messages") {
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_known = i < known || std::ranges::count(also, all[i]) > 0;
      const json reply = post(to, with(all[i], list), is_known ? 200 : 400);
      if (is_known) continue;
      EXPECT_TRUE(message(reply).starts_with(std::string(list) + "[1].role is")) << to << reply;
      if (to.starts_with("/v1/chat")) {
        EXPECT_EQ(reply["error"]["param"], "messages[1].role");
      }
    }
  };
  check("/v1/chat/completions", 6);
  check("/apply-template", 6);
  check("/v1/responses", 4, {}, "input");
  check("/v1/messages", 0, {"user", "assistant"});
  check("/api/chat", 0, {"system", "user", "assistant", "tool"});
}

// Templates of some models know more: Llama 3 "ipython", Gemma "model".
TEST_F(Roles, ThatTheTemplateNames) {
  ServerOptions options = test::RunningServer::with_model(path());
  options.chat_template =
      "{% for m in messages %}{% if m.role == 'ipython' %}tool:{% else %}{{ m.role }}:{% endif %}"
      "{{ m.content }};{% if m.parts == 'object' %}'text'{% endif %}{% endfor %}";
  const test::RunningServer running(std::move(options));
  const auto prompt = [&](const std::string& role) {
    const test::ClientReply reply = running.post("/apply-template", with(role).dump());
    return reply.status == 200 ? json::parse(reply.body)["prompt"].get<std::string>() : reply.body;
  };
  EXPECT_EQ(prompt("ipython"), "user:Once;tool:Tom;");
  EXPECT_EQ(prompt("function"), "user:Once;tool:Tom;") << "OpenAI's older name";
  EXPECT_EQ(prompt("developer"), "user:Once;system:Tom;");
  for (const char* other : {"model", "object", "text", ""})
    EXPECT_NE(prompt(other).find("messages[1].role"), std::string::npos) << other;
  for (const char* to : {"/v1/chat/completions", "/api/chat"})
    EXPECT_EQ(running.post(to, with("ipython").dump()).status, 200) << to;
}

// Only /v1/completions and /completion may ask for no token: they score or read the prompt.
TEST_F(Roles, NoTokens) {
  const auto status = [&](const std::string& to, json body, const char* field) {
    body[field] = 0;
    const test::ClientReply reply = server().post(to, body.dump());
    if (reply.status == 400) {
      EXPECT_NE(reply.body.find(std::string("\"") + field + " is 0"), std::string::npos)
          << reply.body;
    }
    return reply.status;
  };
  EXPECT_EQ(status("/v1/chat/completions", chat(), "max_tokens"), 400);
  EXPECT_EQ(status("/v1/chat/completions", chat(), "max_completion_tokens"), 400);
  EXPECT_EQ(status("/v1/messages", chat(), "max_tokens"), 400);
  EXPECT_EQ(status("/v1/responses", {{"input", "Once"}}, "max_output_tokens"), 400);
  EXPECT_EQ(status("/v1/completions", once(1), "max_tokens"), 200);
  EXPECT_EQ(status("/completion", once(1), "n_predict"), 200);
}

}  // namespace
}  // namespace prism::server
