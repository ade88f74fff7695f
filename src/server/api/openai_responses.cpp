// /v1/responses. Nothing is stored: every request carries the whole conversation.
#include <fmt/format.h>

#include "server/api/api.h"
#include "server/api/generation_settings.h"
#include "server/api/openai.h"
#include "server/api/request_fields.h"
#include "server/api/responses_input.h"

namespace prism::server {
namespace {

using Kind = llm::MessagePart::Kind;

// One item of the output: reasoning, a message, or a call of a function.
struct OutputItem {
  Kind kind = Kind::content;  // call_begin for a call
  std::string id, text;       // of a call: its arguments
  std::string call_id, name;
  std::vector<llm::TokenScore> scores;

  bool is_call() const { return kind == Kind::call_begin; }
};

OutputItem new_item(Kind kind) {
  const char* prefix = kind == Kind::content ? "msg_" : kind == Kind::reasoning ? "rs_" : "fc_";
  OutputItem item;
  item.kind = kind;
  item.id = random_id(prefix);
  return item;
}

class ResponsesFormat : public AnswerFormat {
 public:
  // request: the fields of the request that a response repeats.
  ResponsesFormat(Json request, bool has_logprobs)
      : request_(std::move(request)), has_logprobs_(has_logprobs) {}

  HttpReply error(const ApiError& error) override { return openai_error(error); }
  std::string stream_error(const ApiError& error) override {
    return event("error", {{"code", error.code().empty() ? Json() : Json(error.code())},
                           {"message", error.what()},
                           {"param", error.field().empty() ? Json() : Json(error.field())}});
  }

  Json whole(const Answer& answer) override {
    const Choice& choice = answer.choices()[0];
    const auto add = [&](Kind kind, const std::string& text) -> OutputItem& {
      items_.push_back(new_item(kind));
      items_.back().text = text;
      return items_.back();
    };
    if (!choice.reasoning.empty()) add(Kind::reasoning, choice.reasoning);
    if (!choice.content.empty() || choice.calls.empty())
      add(Kind::content, choice.content).scores = choice.scores;
    for (const ToolCall& each : choice.calls) {
      OutputItem& item = add(Kind::call_begin, each.arguments);
      item.call_id = each.id;
      item.name = each.name;
    }
    return ended(answer);
  }

  std::string begin(const Answer& answer) override {
    const Json response = response_json(answer, "in_progress");
    std::string events = event("response.created", {{"response", response}});
    return events += event("response.in_progress", {{"response", response}});
  }

  std::string prompt(const Answer& answer, const Choice&,
                     const llm::PromptProgress& progress) override {
    return event("response.in_progress", {{"response", response_json(answer, "in_progress")}},
                 progress_members(answer, progress));
  }

  std::string piece(const Answer& answer, const Choice& choice, const ChoicePiece& piece) override {
    std::string events;
    const Json more = piece_members(piece.event);
    // The calls of this piece that have no item yet.
    size_t call = choice.calls.size();
    for (const llm::MessagePart& each : piece.parts)
      if (each.kind == Kind::call_begin) --call;
    std::vector<llm::TokenScore> scores = piece.event.scores;
    for (const llm::MessagePart& each : piece.parts) {
      if (each.kind == Kind::call_begin) {
        OutputItem item = new_item(each.kind);
        item.call_id = choice.calls[call++].id;
        item.name = each.text;
        events += open(std::move(item));
        continue;
      }
      if (each.kind != Kind::call_arguments && (!is_open_ || items_.back().kind != each.kind))
        events += open(new_item(each.kind));
      events += delta(answer, each.text, std::exchange(scores, {}), more);
    }
    return events;
  }

  std::string end(const Answer& answer, const Choice& choice) override {
    std::string events;
    if (items_.empty()) events = open(new_item(Kind::content));
    is_cut_ = is_cut(choice);
    events += close(answer);
    const Json response = ended(answer);
    return events +
           event(is_cut_ ? "response.incomplete" : "response.completed",
                 {{"response", response}, {"timings", timings_json(choice.result.statistics)}});
  }

 private:
  std::string event(const char* type, const Json& fields, const Json& more = nullptr) {
    Json json = {{"type", type}, {"sequence_number", sequence_++}};
    for (const Json* some : {&fields, &more})
      for (const Json::Member& each : some->members()) json[each.key] = each.value;
    return sse_event(json.dump(), type);
  }

  // Begins an item, after the end of the one before.
  std::string open(OutputItem item) {
    std::string events = is_open_ ? close_last() : "";
    items_.push_back(std::move(item));
    is_open_ = true;
    const OutputItem& last = items_.back();
    Json added = item_json(last, "in_progress");
    if (!last.is_call()) added["content"] = Json::array();
    events += event("response.output_item.added", {{"output_index", index()}, {"item", added}});
    if (!last.is_call()) events += event("response.content_part.added", part_event(last));
    return events;
  }

  std::string delta(const Answer& answer, const std::string& text,
                    std::vector<llm::TokenScore> scores, const Json& more) {
    tokenizer_ = &answer.tokenizer();
    OutputItem& item = items_.back();
    item.text += text;
    if (item.is_call())
      return event("response.function_call_arguments.delta",
                   {{"item_id", item.id}, {"output_index", index()}, {"delta", text}}, more);
    Json json = place(item);
    json["delta"] = text;
    if (item.kind == Kind::reasoning) return event("response.reasoning_text.delta", json, more);
    json["logprobs"] = logprobs(scores);
    item.scores.insert(item.scores.end(), scores.begin(), scores.end());
    return event("response.output_text.delta", json, more);
  }

  std::string close(const Answer& answer) {
    tokenizer_ = &answer.tokenizer();
    return is_open_ ? close_last() : "";
  }

  std::string close_last() {
    is_open_ = false;
    const OutputItem& item = items_.back();
    std::string events;
    if (item.is_call()) {
      events = event("response.function_call_arguments.done", {{"item_id", item.id},
                                                               {"output_index", index()},
                                                               {"name", item.name},
                                                               {"arguments", item.text}});
    } else {
      Json json = place(item);
      json["text"] = item.text;
      if (item.kind == Kind::content) json["logprobs"] = logprobs(item.scores);
      const bool is_text = item.kind == Kind::content;
      events = event(is_text ? "response.output_text.done" : "response.reasoning_text.done", json);
      events += event("response.content_part.done", part_event(item));
    }
    return events + event("response.output_item.done",
                          {{"output_index", index()},
                           {"item", item_json(item, is_cut_ ? "incomplete" : "completed")}});
  }

  size_t index() const { return items_.size() - 1; }
  Json place(const OutputItem& item) const {
    return {{"item_id", item.id}, {"output_index", index()}, {"content_index", 0}};
  }
  Json part_event(const OutputItem& item) const {
    Json json = place(item);
    json["part"] = part_json(item);
    return json;
  }

  Json logprobs(const std::vector<llm::TokenScore>& scores) const {
    return has_logprobs_ && tokenizer_ ? scores_json(*tokenizer_, scores) : Json::array();
  }

  Json part_json(const OutputItem& item) const {
    if (item.kind == Kind::reasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
    return {{"type", "output_text"},
            {"text", item.text},
            {"annotations", Json::array()},
            {"logprobs", logprobs(item.scores)}};
  }

  Json item_json(const OutputItem& item, const char* status) const {
    if (item.is_call())
      return {{"id", item.id},           {"type", "function_call"}, {"status", status},
              {"call_id", item.call_id}, {"name", item.name},       {"arguments", item.text}};
    Json content = Json::array();
    content.push_back(part_json(item));
    Json json = {{"id", item.id}, {"status", status}};
    if (item.kind == Kind::reasoning) {
      json["type"] = "reasoning";
      json["summary"] = Json::array();
    } else {
      json["type"] = "message";
      json["role"] = "assistant";
    }
    json["content"] = std::move(content);
    return json;
  }

  Json ended(const Answer& answer) {
    const Choice& choice = answer.choices()[0];
    tokenizer_ = &answer.tokenizer();
    is_cut_ = is_cut(choice);
    const AnswerUsage usage = answer.usage();
    Json json = response_json(answer, is_cut_ ? "incomplete" : "completed");
    if (is_cut_) {
      json["incomplete_details"] = Json::object();
      json["incomplete_details"]["reason"] = "max_output_tokens";
    }
    Json input_details = Json::object(), output_details = Json::object();
    input_details["cached_tokens"] = usage.cached_tokens;
    output_details["reasoning_tokens"] = usage.reasoning_tokens;
    json["usage"] = {{"input_tokens", usage.prompt_tokens},
                     {"input_tokens_details", std::move(input_details)},
                     {"output_tokens", usage.generated_tokens},
                     {"output_tokens_details", std::move(output_details)},
                     {"total_tokens", usage.prompt_tokens + usage.generated_tokens}};
    json["completed_at"] = unix_seconds();
    return json;
  }

  Json response_json(const Answer& answer, const char* status) const {
    Json json = {{"id", id_},
                 {"object", "response"},
                 {"created_at", created_},
                 {"status", status},
                 {"error", nullptr},
                 {"incomplete_details", nullptr},
                 {"model", answer.request().model->name()}};
    Json output = Json::array();
    for (size_t i = 0; i < items_.size(); ++i)
      output.push_back(
          item_json(items_[i], is_cut_ && i + 1 == items_.size() ? "incomplete" : "completed"));
    json["output"] = std::move(output);
    for (const Json::Member& each : request_.members()) json[each.key] = each.value;
    json["usage"] = nullptr;
    return json;
  }

  const std::string id_ = random_id("resp_");
  const int64_t created_ = unix_seconds();
  const Json request_;
  const bool has_logprobs_;
  const llm::Tokenizer* tokenizer_ = nullptr;
  std::vector<OutputItem> items_;
  bool is_open_ = false, is_cut_ = false;
  int64_t sequence_ = 0;
};

// The fields of a request that its response repeats.
Json repeated_fields(const JsonView& body, const llm::GenerationOptions& options) {
  const auto given = [&](const char* name, const Json& otherwise) {
    return body[name] ? body[name].json() : otherwise;
  };
  Json format = Json::object();
  format["format"] = {{"type", "text"}};
  Json json = Json::object();
  json["instructions"] = given("instructions", nullptr);
  json["max_output_tokens"] = given("max_output_tokens", nullptr);
  json["metadata"] = given("metadata", Json::object());
  json["parallel_tool_calls"] = given("parallel_tool_calls", true);
  json["previous_response_id"] = nullptr;
  json["reasoning"] = given("reasoning", nullptr);
  json["store"] = false;
  json["temperature"] = rounded(options.sampler.temperature);
  json["text"] = given("text", format);
  json["tool_choice"] = given("tool_choice", "auto");
  json["tools"] = given("tools", Json::array());
  json["top_p"] = rounded(options.sampler.top_p);
  json["top_logprobs"] = given("top_logprobs", 0);
  json["truncation"] = "disabled";
  json["user"] = given("user", nullptr);
  return json;
}

// Fields that ask for a response that was stored, or for storing this one.
void refuse_state(const JsonView& body) {
  for (const char* name : {"previous_response_id", "conversation", "prompt"})
    if (body[name])
      body[name].fail(
          "needs stored responses, which this server does not keep; send the whole "
          "conversation as input");
  if (body["background"].boolean_or(false))
    body["background"].fail("needs stored responses, which this server does not keep");
}

}  // namespace

void openai_responses_tokens(const ApiCall& call) {
  refuse_state(call.body);
  AnswerRequest request;
  request.model = call.context.models.find(call.body["model"].string_or(""));
  prepare_chat(read_responses_chat(call.body, *request.model), request);
  send_json(call.response,
            {{"object", "response.input_tokens"}, {"input_tokens", request.prompts[0].size()}});
}

void openai_responses(const ApiCall& call) {
  const JsonView& body = call.body;
  refuse_state(body);
  AnswerRequest request;
  request.model = call.context.models.find(body["model"].string_or(""));
  const ChatRequest chat = read_responses_chat(body, *request.model);
  request.options = default_options(*request.model);
  request.options.max_tokens = body["max_output_tokens"].integer_or(request.options.max_tokens, 1);
  read_sampling(body, *request.model, request.options);
  read_stop(body["stop"], request.options);
  read_text_format(body["text"]["format"], request.options);
  bool has_logprobs = static_cast<bool>(body["top_logprobs"]);
  for (const JsonView& each : body["include"].items())
    has_logprobs |= each.string() == "message.output_text.logprobs";
  if (has_logprobs) request.options.scores = body["top_logprobs"].integer_or(0, 0, kMaxLogprobs);
  request.is_streamed = body["stream"].boolean_or(false);
  request.shows_prompts = body["return_progress"].boolean_or(false);
  request.shows_timings = body["timings_per_token"].boolean_or(false);
  prepare_chat(chat, request);
  auto format =
      std::make_unique<ResponsesFormat>(repeated_fields(body, request.options), has_logprobs);
  Answer::start(call.context.engine, std::move(request), std::move(format), call.response);
}

}  // namespace prism::server
