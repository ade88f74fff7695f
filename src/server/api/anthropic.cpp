// /v1/messages and /v1/messages/count_tokens, as Anthropic's API has them.
#include <fmt/format.h>

#include "server/api/api.h"
#include "server/api/chat_request.h"
#include "server/api/request_fields.h"

namespace prism::server {
namespace {

using Kind = llm::MessagePart::Kind;
using ToolChoice = ChatRequest::ToolChoice;

Json error_json(const ApiError& error) {
  const int status = error.status();
  const char* type = status == 401   ? "authentication_error"
                     : status == 403 ? "permission_error"
                     : status == 404 ? "not_found_error"
                     : status == 413 ? "request_too_large"
                     : status == 429 ? "rate_limit_error"
                     : status == 503 ? "overloaded_error"
                     : status >= 500 ? "api_error"
                                     : "invalid_request_error";
  return {{"type", "error"}, {"error", Json{{"type", type}, {"message", error.what()}}}};
}

const char* stop_reason(const Choice& choice) {
  if (is_cut(choice)) return "max_tokens";
  if (!choice.calls.empty()) return "tool_use";
  return choice.result.reason == llm::StopReason::stop_text ? "stop_sequence" : "end_turn";
}

Json usage_json(const AnswerUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"output_tokens", usage.generated_tokens}};
}

class MessagesFormat : public AnswerFormat {
 public:
  explicit MessagesFormat(int64_t prompt_tokens) : prompt_tokens_(prompt_tokens) {}

  HttpReply error(const ApiError& error) override { return anthropic_error(error); }
  std::string stream_error(const ApiError& error) override {
    return sse_event(error_json(error).dump(), "error");
  }
  const char* keep_alive() const override { return "event: ping\ndata: {\"type\": \"ping\"}\n\n"; }

  Json whole(const Answer& answer) override {
    const Choice& choice = answer.choices()[0];
    Json content = Json::array();
    if (!choice.reasoning.empty())
      content.push_back({{"type", "thinking"}, {"thinking", choice.reasoning}, {"signature", ""}});
    if (!choice.content.empty() || choice.calls.empty())
      content.push_back({{"type", "text"}, {"text", choice.content}});
    for (const ToolCall& each : choice.calls)
      content.push_back({{"type", "tool_use"},
                         {"id", each.id},
                         {"name", each.name},
                         {"input", arguments_json(each.arguments)}});
    return message(answer, std::move(content), stop_reason(choice), stop_sequence(choice),
                   usage_json(answer.usage()));
  }

  std::string begin(const Answer& answer) override {
    Json start = {{"type", "message_start"}};
    start["message"] = message(answer, Json::array(), nullptr, nullptr,
                               {{"input_tokens", prompt_tokens_}, {"output_tokens", 0}});
    return sse_event(start.dump(), "message_start");
  }

  std::string piece(const Answer&, const Choice& choice, const ChoicePiece& piece) override {
    std::string events;
    // The calls of this piece that have not begun a block yet.
    size_t call = choice.calls.size();
    for (const llm::MessagePart& each : piece.parts)
      if (each.kind == Kind::call_begin) --call;
    for (const llm::MessagePart& each : piece.parts) {
      if (each.kind == Kind::call_begin) {
        events += open(each.kind, {{"type", "tool_use"},
                                   {"id", choice.calls[call].id},
                                   {"name", each.text},
                                   {"input", Json::object()}});
        ++call;
      } else if (each.kind == Kind::call_arguments) {
        events += delta({{"type", "input_json_delta"}, {"partial_json", each.text}});
      } else if (each.kind == Kind::reasoning) {
        if (open_ != each.kind)
          events += open(each.kind, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
        events += delta({{"type", "thinking_delta"}, {"thinking", each.text}});
      } else {
        if (open_ != each.kind) events += open(each.kind, {{"type", "text"}, {"text", ""}});
        events += delta({{"type", "text_delta"}, {"text", each.text}});
      }
    }
    return events;
  }

  std::string end(const Answer& answer, const Choice& choice) override {
    std::string events = close();
    Json last = {{"type", "message_delta"},
                 {"delta", Json{{"stop_reason", stop_reason(choice)},
                                {"stop_sequence", stop_sequence(choice)}}},
                 {"usage", usage_json(answer.usage())}};
    events += sse_event(last.dump(), "message_delta");
    return events + sse_event(R"({"type":"message_stop"})", "message_stop");
  }

 private:
  static Json stop_sequence(const Choice& choice) {
    return choice.result.stop.empty() ? Json() : Json(choice.result.stop);
  }
  Json message(const Answer& answer, Json content, Json reason, Json sequence, Json usage) const {
    Json json = {{"id", id_},
                 {"type", "message"},
                 {"role", "assistant"},
                 {"model", answer.request().model->name()}};
    json["content"] = std::move(content);
    json["stop_reason"] = std::move(reason);
    json["stop_sequence"] = std::move(sequence);
    json["usage"] = std::move(usage);
    return json;
  }
  // Ends the open block and begins one for parts of this kind.
  std::string open(Kind kind, Json block) {
    std::string events = close();
    open_ = kind;
    Json json = {{"type", "content_block_start"}, {"index", ++index_}};
    json["content_block"] = std::move(block);
    return events + sse_event(json.dump(), "content_block_start");
  }
  std::string close() {
    const std::optional<Kind> ended = std::exchange(open_, std::nullopt);
    if (!ended) return {};
    std::string events;
    if (*ended == Kind::reasoning) events = delta({{"type", "signature_delta"}, {"signature", ""}});
    return events + sse_event(Json{{"type", "content_block_stop"}, {"index", index_}}.dump(),
                              "content_block_stop");
  }
  std::string delta(Json change) const {
    Json json = {{"type", "content_block_delta"}, {"index", index_}};
    json["delta"] = std::move(change);
    return sse_event(json.dump(), "content_block_delta");
  }

  const std::string id_ = random_id("msg_");
  int64_t prompt_tokens_;
  std::optional<Kind> open_;
  int64_t index_ = -1;
};

// Text blocks joined; other kinds are refused.
std::string text_of(const JsonView& content) { return read_content(content); }

// One message of Anthropic's becomes one or several of the template's: results of tools stand
// alone.
void add_message(std::vector<llm::ChatMessage>& messages, const JsonView& from) {
  const std::string& role = from["role"].string();
  if (role != "user" && role != "assistant")
    from["role"].fail(fmt::format("is \"{}\"; it must be user or assistant", role));
  const JsonView content = from["content"];
  if (content.is_string()) {
    messages.push_back({.role = role, .content = content.string()});
    return;
  }
  if (!content.is_array()) content.fail("must be a string or an array of blocks");
  llm::ChatMessage message{.role = role, .content = {}};
  bool has_text = false;
  Json calls = Json::array();
  if (content.items().empty()) content.fail("is empty; it must have at least one block");
  for (const JsonView& block : content.items()) {
    const std::string& type = block["type"].string();
    if (type == "text") {
      message.content += (message.content.empty() ? "" : "\n") + block["text"].string();
      has_text = true;
    } else if (type == "thinking") {
      message.reasoning_content += block["thinking"].string();
    } else if (type == "tool_use") {
      Json function = {{"name", block["name"].string()}};
      function["arguments"] = read_arguments(block["input"]);
      calls.push_back({{"type", "function"}, {"id", block["id"].string()}, {"function", function}});
    } else if (type == "tool_result") {
      messages.push_back({.role = "tool",
                          .content = text_of(block["content"]),
                          .tool_call_id = block["tool_use_id"].string()});
    } else if (type != "redacted_thinking") {
      block["type"].fail(fmt::format("is \"{}\"; this server reads text only", type));
    }
  }
  if (!calls.items().empty()) message.tool_calls = calls.dump();
  if (has_text || !message.tool_calls.empty()) messages.push_back(message);
}

ChatRequest read_chat(const JsonView& body) {
  ChatRequest chat;
  if (const std::string system = text_of(body["system"]); !system.empty())
    chat.messages.push_back({.role = "system", .content = system});
  if (!body["messages"].is_array()) body["messages"].fail("must be an array of messages");
  for (const JsonView& each : body["messages"].items()) add_message(chat.messages, each);
  if (chat.messages.empty() || body["messages"].items().empty())
    body["messages"].fail("is empty; it must have at least one message");
  for (const JsonView& each : body["tools"].items()) {
    if (each["name"].string().empty()) each["name"].fail("is empty");
    Json function = {{"name", each["name"].string()},
                     {"description", each["description"].string_or("")}};
    if (const std::string type = each["type"].string_or("custom"); type != "custom")
      each["type"].fail(fmt::format("is \"{}\"; this server knows tools of type custom", type));
    if (!each["input_schema"]) each["input_schema"].fail("is missing; it must be a JSON schema");
    check_parameters(each["input_schema"]);
    function["parameters"] = each["input_schema"].json();
    chat.tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  if (const JsonView thinking = body["thinking"])
    chat.extra = Json{{"enable_thinking", thinking["type"].string() != "disabled"}}.dump();
  if (const JsonView choice = body["tool_choice"]) {
    const std::string& type = choice["type"].string();
    if (type == "none")
      chat.tool_choice = ToolChoice::none;
    else if (type == "any" || type == "tool")
      chat.tool_choice = ToolChoice::required;
    else if (type != "auto")
      choice["type"].fail(fmt::format("is \"{}\"; it must be auto, any, tool or none", type));
    chat.parallel_calls = !choice["disable_parallel_tool_use"].boolean_or(false);
    if (chat.tool_choice == ToolChoice::required && chat.tools.items().empty())
      choice.fail("needs tools");
    if (type == "tool") chat.tool = known_tool(choice, chat.tools);
  }
  return chat;
}

}  // namespace

HttpReply anthropic_error(const ApiError& error) {
  HttpHeaders headers = error.headers();
  headers.emplace_back("content-type", "application/json");
  return {error.status(), std::move(headers), error_json(error).dump() + "\n"};
}

void anthropic_messages(const ApiCall& call) {
  const JsonView& body = call.body;
  AnswerRequest request;
  request.model = call.context.models.find(body["model"].string_or(""));
  request.options = default_options(*request.model);
  request.options.max_tokens = body["max_tokens"].integer(1);
  read_sampling(body, *request.model, request.options);
  read_stop(body["stop_sequences"], request.options);
  read_text_format(body["output_config"]["format"], request.options);
  request.is_streamed = body["stream"].boolean_or(false);
  prepare_chat(read_chat(body), request);
  auto format = std::make_unique<MessagesFormat>(static_cast<int64_t>(request.prompts[0].size()));
  Answer::start(call.context.engine, std::move(request), std::move(format), call.response);
}

void anthropic_count_tokens(const ApiCall& call) {
  AnswerRequest request;
  request.model = call.context.models.find(call.body["model"].string_or(""));
  prepare_chat(read_chat(call.body), request);
  send_json(call.response, {{"input_tokens", request.prompts[0].size()}});
}

}  // namespace prism::server
