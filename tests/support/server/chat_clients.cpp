#include "support/server/chat_clients.h"

#include <sstream>

#include <gtest/gtest.h>

namespace prism::test {
namespace {

// A text, or none.
std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

void read_openai(const json& choice, const char* message, ChatAnswer& answer) {
  const json& part = choice[message];
  answer.content += text_in(part, "content");
  answer.reasoning += text_in(part, "reasoning_content");
  answer.end += text_in(choice, "finish_reason");
  for (const json& call : part.value("tool_calls", json::array())) {
    const json& function = call["function"];
    if (call.contains("id")) {
      EXPECT_EQ(call.value("index", answer.calls.size()), answer.calls.size());
      answer.calls.push_back({function["name"], ""});
    }
    std::string& arguments = answer.calls.back().arguments.get_ref<std::string&>();
    arguments += text_in(function, "arguments");
  }
}

void read_responses(const json& response, ChatAnswer& answer) {
  answer.end = response["status"];
  for (const json& item : response["output"]) {
    if (item["type"] == "reasoning")
      answer.reasoning += item["content"][0]["text"];
    else if (item["type"] == "message")
      answer.content += item["content"][0]["text"];
    else
      answer.calls.push_back({item["name"], item["arguments"]});
  }
}

// The deltas must join to what the last event repeats.
void read_responses_event(const json& event, ChatAnswer& joined, ChatAnswer& answer) {
  const std::string type = event["type"];
  if (type == "response.output_text.delta") joined.content += event["delta"];
  if (type == "response.reasoning_text.delta") joined.reasoning += event["delta"];
  if (type == "response.output_item.added" && event["item"]["type"] == "function_call")
    joined.calls.push_back({event["item"]["name"], ""});
  if (type == "response.function_call_arguments.delta")
    joined.calls.back().arguments.get_ref<std::string&>() += event["delta"];
  if (type != "response.completed" && type != "response.incomplete") return;
  read_responses(event["response"], answer);
  EXPECT_EQ(joined.content, answer.content);
  EXPECT_EQ(joined.reasoning, answer.reasoning);
  EXPECT_EQ(joined.calls, answer.calls);
}

void read_anthropic(const json& message, ChatAnswer& answer) {
  answer.end = message["stop_reason"];
  for (const json& block : message["content"]) {
    if (block["type"] == "thinking")
      answer.reasoning += block["thinking"];
    else if (block["type"] == "text")
      answer.content += block["text"];
    else
      answer.calls.push_back({block["name"], block["input"]});
  }
}

void read_anthropic_event(const json& event, ChatAnswer& answer) {
  if (event["type"] == "content_block_start" && event["content_block"]["type"] == "tool_use")
    answer.calls.push_back({event["content_block"]["name"], ""});
  if (event["type"] == "content_block_delta") {
    const json& delta = event["delta"];
    answer.content += text_in(delta, "text");
    answer.reasoning += text_in(delta, "thinking");
    if (delta["type"] == "input_json_delta")
      answer.calls.back().arguments.get_ref<std::string&>() += delta["partial_json"];
  }
  if (event["type"] == "message_delta") answer.end = event["delta"]["stop_reason"];
}

void read_ollama(const json& line, ChatAnswer& answer) {
  const json& message = line["message"];
  answer.content += text_in(message, "content");
  answer.reasoning += text_in(message, "thinking");
  for (const json& call : message.value("tool_calls", json::array()))
    answer.calls.push_back({call["function"]["name"], call["function"]["arguments"]});
  if (line["done"]) answer.end = line["done_reason"];
}

}  // namespace

json chat_request(const std::string& path, const ChatQuestion& question) {
  const json messages = json::array({{{"role", "user"}, {"content", "How warm is it?"}}});
  json request = {{path == "/v1/responses" ? "input" : "messages", messages}};
  const bool is_anthropic = path == "/v1/messages", is_ollama = path == "/api/chat";
  if (is_anthropic) {
    request["max_tokens"] = 10000;
    request["thinking"] = {{"type", question.thinks ? "enabled" : "disabled"}};
  } else if (is_ollama) {
    request["think"] = question.thinks;
  } else {
    request["chat_template_kwargs"] = {{"enable_thinking", question.thinks}};
  }
  const json parameters[] = {{{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}},
                             {{"type", "object"}, {"properties", json::object()}}};
  for (const int i : {0, 1}) {
    if (!question.has_tools) break;
    json function = {{"name", i == 0 ? "get_weather" : "get_time"}, {"description", "Says it."}};
    function[is_anthropic ? "input_schema" : "parameters"] = parameters[i];
    if (path == "/v1/responses") function["type"] = "function";
    if (path == "/v1/chat/completions" || is_ollama)
      function = {{"type", "function"}, {"function", function}};
    request["tools"].push_back(function);
  }
  if (question.has_single_calls && is_anthropic)
    request["tool_choice"] = {{"type", "auto"}, {"disable_parallel_tool_use", true}};
  else if (question.has_single_calls)
    request["parallel_tool_calls"] = false;
  if (question.schema.is_null()) return request;
  if (path == "/v1/responses")
    request["text"]["format"] = {
        {"type", "json_schema"}, {"name", "answer"}, {"schema", question.schema}};
  else if (is_ollama)
    request["format"] = question.schema;
  else
    request["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "answer"}, {"schema", question.schema}}}};
  return request;
}

ChatAnswer ask(const RunningServer& server, const std::string& path, json request,
               bool is_streamed) {
  request["stream"] = is_streamed;
  const ClientReply reply = server.post(path, request.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  ChatAnswer answer, joined;
  std::vector<std::string> events = event_data(reply.body);
  if (path == "/api/chat") {
    std::istringstream lines(reply.body);
    for (std::string line; std::getline(lines, line);) events.push_back(line);
  } else if (!is_streamed) {
    events = {reply.body};
  }
  for (const std::string& each : events) {
    if (each == "[DONE]") continue;
    const json event = json::parse(each, nullptr, false);
    try {
      if (path == "/v1/chat/completions")
        read_openai(event["choices"][0], is_streamed ? "delta" : "message", answer);
      else if (path == "/v1/responses" && is_streamed)
        read_responses_event(event, joined, answer);
      else if (path == "/v1/responses")
        read_responses(event, answer);
      else if (path == "/v1/messages" && is_streamed)
        read_anthropic_event(event, answer);
      else if (path == "/v1/messages")
        read_anthropic(event, answer);
      else
        read_ollama(event, answer);
    } catch (const json::exception& wrong) {
      ADD_FAILURE() << wrong.what() << ": " << each;
    }
  }
  return answer;
}

}  // namespace prism::test
