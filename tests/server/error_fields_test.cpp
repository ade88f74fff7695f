// The fields that errors name are paths in the request that the client sent, in each API.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/server/openai_server.h"

namespace prism::server {
namespace {

using nlohmann::json;

class ErrorFields : public test::OpenAiServer {
 protected:
  static std::string param(const std::string& to, const json& body) {
    const json refusal = error(to, body.dump(), 400);
    const std::string message = refusal.value("message", "");
    const json& named = refusal["param"];
    EXPECT_TRUE(named.is_string()) << to << body << refusal;
    if (!named.is_string()) return {};
    EXPECT_TRUE(message.starts_with(named.get<std::string>())) << refusal;
    return named;
  }
  // Of APIs whose errors are a sentence.
  static std::string sentence(const std::string& to, const json& body) {
    const json refusal = error(to, body.dump(), 400);
    return refusal.is_string() ? refusal.get<std::string>() : refusal.value("message", "");
  }
  static json responses(const json& item) {
    return {{"input", {{{"role", "user"}, {"content", "Once"}}, item}}};
  }
  static std::string long_text() {
    std::string text;
    for (int i = 0; i < 300; ++i) text += "Once ";
    return text;
  }
};

TEST_F(ErrorFields, OfResponses) {
  const json call = {{"type", "function_call"}, {"call_id", "c"}, {"name", "paint"}};
  const auto with = [&](const char* key, const json& value) {
    json item = call;
    item[key] = value;
    return param("/v1/responses", responses(item));
  };
  EXPECT_EQ(with("arguments", "{"), "input[1].arguments");
  EXPECT_EQ(with("arguments", {{"a", 1}}), "input[1].arguments");
  EXPECT_EQ(with("arguments", "[1]"), "input[1].arguments");
  EXPECT_EQ(with("name", 5), "input[1].arguments") << "which is missing";
  const json result = {{"type", "function_call_output"}, {"call_id", "c"}};
  EXPECT_EQ(param("/v1/responses", responses(result)), "input[1].output");
  const auto tool = [&](const json& each) {
    return param("/v1/responses", {{"input", "Once"}, {"tools", {each}}});
  };
  EXPECT_EQ(tool({{"type", "function"}}), "tools[0].name");
  EXPECT_EQ(tool({{"type", "function"}, {"name", ""}}), "tools[0].name");
  EXPECT_EQ(tool({{"type", "function"}, {"name", "a"}, {"parameters", 5}}), "tools[0].parameters");
  const auto format = [&](const json& each) {
    return param("/v1/responses", {{"input", "Once"}, {"text", {{"format", each}}}});
  };
  EXPECT_EQ(format({{"type", "json_schema"}, {"name", "a"}}), "text.format.schema");
  EXPECT_EQ(format({{"type", "json_schema"}, {"schema", 5}}), "text.format.schema");
  EXPECT_EQ(format({{"type", "xml"}}), "text.format.type");
}

TEST_F(ErrorFields, OfAnthropicsBlocks) {
  const auto said = [&](const char* role, const json& content, const json& more = json::object()) {
    json body = {{"max_tokens", 1}, {"messages", {{{"role", role}, {"content", content}}}}};
    body.update(more);
    return sentence("/v1/messages", body);
  };
  const std::string empty = said("user", json::array());
  EXPECT_TRUE(empty.starts_with("messages[0].content is empty")) << empty;
  json call = {{"type", "tool_use"}, {"id", "c"}, {"name", "paint"}, {"input", "red"}};
  const std::string arguments = said("assistant", json::array({call}));
  EXPECT_TRUE(arguments.starts_with("messages[0].content[0].input ")) << arguments;
  const json tools = {{{"name", ""}, {"input_schema", json::object()}}};
  const std::string name = said("user", "Once", {{"tools", tools}});
  EXPECT_TRUE(name.starts_with("tools[0].name ")) << name;
  EXPECT_TRUE(sentence("/v1/messages", {{"max_tokens", 1}, {"messages", json::array()}})
                  .starts_with("messages is empty"));
  const std::string thoughts = said("assistant", {{{"type", "redacted_thinking"}, {"data", "x"}}});
  EXPECT_TRUE(thoughts.starts_with("messages is empty")) << thoughts;
  // An empty text is an empty message, whichever way it is written.
  const json text = {{{"type", "text"}, {"text", ""}}};
  const auto count = [&](const json& content) {
    return post("/v1/messages/count_tokens",
                {{"messages", {{{"role", "user"}, {"content", content}}}}})["input_tokens"];
  };
  EXPECT_EQ(count(text), count(""));
}

TEST_F(ErrorFields, OfTextsBeyondTheContext) {
  const std::string text = long_text();
  const json messages = {{{"role", "user"}, {"content", text}}};
  EXPECT_EQ(param("/v1/chat/completions", {{"messages", messages}}), "messages");
  EXPECT_EQ(param("/v1/responses", {{"input", text}}), "input");
  EXPECT_EQ(param("/v1/completions", {{"prompt", text}}), "prompt");
  EXPECT_EQ(param("/v1/completions", {{"prompt", {"Once", text}}}), "prompt[1]");
  EXPECT_EQ(param("/v1/completions", {{"prompt", text}, {"echo", true}, {"logprobs", 1}}),
            "prompt");
  EXPECT_EQ(param("/completion", {{"prompt", text}}), "prompt");
  EXPECT_TRUE(sentence("/api/generate", {{"prompt", text}}).starts_with("prompt: "));
  EXPECT_TRUE(sentence("/api/chat", {{"messages", messages}}).starts_with("messages: "));
  EXPECT_TRUE(sentence("/v1/messages", {{"messages", messages}, {"max_tokens", 5}})
                  .starts_with("messages: "));
}

TEST_F(ErrorFields, OfFormats) {
  const auto ollama = [&](const json& format) {
    return sentence("/api/chat", {{"messages", chat()["messages"]}, {"format", format}});
  };
  EXPECT_TRUE(ollama("xml").starts_with("format is")) << ollama("xml");
  EXPECT_TRUE(ollama({{"type", "xml"}}).starts_with("format cannot")) << ollama({{"type", "xml"}});
  EXPECT_TRUE(ollama(5).starts_with("format is not a JSON schema")) << ollama(5);
  const auto anthropic = [&](const json& format) {
    return sentence("/v1/messages", {{"messages", chat()["messages"]},
                                     {"max_tokens", 5},
                                     {"output_config", {{"format", format}}}});
  };
  const std::string type = anthropic({{"type", "xml"}}),
                    schema = anthropic({{"type", "json_schema"}, {"schema", 5}});
  EXPECT_TRUE(type.starts_with("output_config.format.type is")) << type;
  EXPECT_TRUE(schema.starts_with("output_config.format.schema is not")) << schema;
  json body = chat();
  body["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", 5}}}};
  EXPECT_EQ(param("/v1/chat/completions", body), "response_format.json_schema.schema");
  body["response_format"] = {{"type", "json_object"}, {"schema", 5}};
  EXPECT_EQ(param("/v1/chat/completions", body), "response_format.schema");
}

TEST_F(ErrorFields, OfPromptsAndSamplers) {
  EXPECT_EQ(param("/v1/completions", {{"prompt", {"Once", json::array()}}}), "prompt[1]");
  EXPECT_EQ(param("/completion", {{"prompt", "Once"}, {"mirostat_tau", 0}}), "mirostat_tau");
  // A share of 0 leaves one token, as OpenAI's API allows.
  json body = once(20);
  const json greedy = post("/v1/completions", body)["choices"][0]["text"];
  body["temperature"] = 1;
  body["top_p"] = 0;
  EXPECT_EQ(post("/v1/completions", body)["choices"][0]["text"], greedy);
  body["typical_p"] = 0;
  post("/v1/completions", body);
}

TEST_F(ErrorFields, OfTemplatesThatRefuseMessages) {
  ServerOptions options = test::RunningServer::with_model(path());
  options.chat_template = "{{ raise_exception('roles must alternate') }}";
  const test::RunningServer running(std::move(options));
  const auto field = [&](const std::string& to, const json& body) {
    const test::ClientReply reply = running.post(to, body.dump());
    EXPECT_EQ(reply.status, 400) << reply.body;
    const json refusal = json::parse(reply.body)["error"];
    EXPECT_NE(refusal["message"].get<std::string>().find("must alternate"), std::string::npos);
    return refusal["param"];
  };
  EXPECT_EQ(field("/v1/chat/completions", chat()), "messages");
  EXPECT_EQ(field("/apply-template", chat()), "messages");
  EXPECT_EQ(field("/v1/responses", {{"input", "Once"}}), "input");
}

}  // namespace
}  // namespace prism::server
