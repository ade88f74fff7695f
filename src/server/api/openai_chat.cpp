// /v1/chat/completions.
#include <fmt/format.h>

#include "server/api/api.h"
#include "server/api/chat_request.h"
#include "server/api/openai.h"
#include "server/api/request_fields.h"

namespace prism::server {
namespace {

class ChatFormat : public OpenAiFormat {
 public:
  struct Fields {
    bool include_usage = false, has_logprobs = false;
    bool is_verbose = false;  // adds the prompt
  };
  ChatFormat(std::string model, const Fields& fields)
      : OpenAiFormat("chatcmpl-", std::move(model), fields.include_usage),
        has_logprobs_(fields.has_logprobs),
        is_verbose_(fields.is_verbose) {}

  Json whole(const Answer& answer) override {
    Json choices = Json::array();
    for (const Choice& each : answer.choices())
      choices.push_back({{"index", each.index},
                         {"message", message(each)},
                         {"logprobs", logprobs(answer.tokenizer(), each.scores)},
                         {"finish_reason", openai_finish_reason(each)}});
    Json json = completion(answer, "chat.completion", std::move(choices));
    if (is_verbose_)
      json["__verbose"] =
          Json{{"prompt", answer.tokenizer().decode(answer.request().prompts[0], true)}};
    return json;
  }

  std::string begin(const Answer& answer) override {
    std::string events;
    for (const Choice& each : answer.choices())
      events += delta(each, R"({"role":"assistant","content":null})", "null");
    return events;
  }

  std::string prompt(const Answer& answer, const Choice& choice,
                     const llm::PromptProgress& progress) override {
    return delta(choice, "{}", "null", progress_members(answer, progress));
  }

  std::string piece(const Answer& answer, const Choice& choice, const ChoicePiece& piece) override {
    std::string events;
    const Json more = piece_members(piece.event);
    std::string scores =
        has_logprobs_ ? logprobs(answer.tokenizer(), piece.event.scores).dump() : "null";
    for (const llm::MessagePart& each : piece.parts) {
      events += delta(choice, part_json(choice, each), scores, more);
      scores = "null";
    }
    return events;
  }

  std::string end(const Answer&, const Choice& choice) override {
    return chunk(chunk_object(),
                 fmt::format(R"({{"index":{},"delta":{{}},"logprobs":null,"finish_reason":"{}"}})",
                             choice.index, openai_finish_reason(choice)),
                 {{"timings", timings_json(choice.result.statistics)}});
  }

 private:
  const char* chunk_object() const override { return "chat.completion.chunk"; }

  std::string delta(const Choice& choice, const std::string& json, const std::string& scores,
                    const Json& more = nullptr) const {
    return chunk(chunk_object(),
                 fmt::format(R"({{"index":{},"delta":{},"logprobs":{},"finish_reason":null}})",
                             choice.index, json, scores),
                 more);
  }

  static std::string part_json(const Choice& choice, const llm::MessagePart& part) {
    using Kind = llm::MessagePart::Kind;
    if (part.kind == Kind::content)
      return fmt::format(R"({{"content":{}}})", Json(part.text).dump());
    if (part.kind == Kind::reasoning)
      return fmt::format(R"({{"reasoning_content":{}}})", Json(part.text).dump());
    const size_t last = choice.calls.size() - 1;
    Json call = {{"index", last}};
    if (part.kind == Kind::call_begin) {
      call["id"] = choice.calls[last].id;
      call["type"] = "function";
      call["function"] = {{"name", part.text}, {"arguments", ""}};
    } else {
      call["function"] = Json::object();
      call["function"]["arguments"] = part.text;
    }
    Json calls = Json::array();
    calls.push_back(std::move(call));
    Json json = Json::object();
    json["tool_calls"] = std::move(calls);
    return json.dump();
  }

  static Json message(const Choice& choice) {
    Json json = {{"role", "assistant"},
                 {"content",
                  choice.content.empty() && !choice.calls.empty() ? Json() : Json(choice.content)}};
    if (!choice.reasoning.empty()) json["reasoning_content"] = choice.reasoning;
    for (const ToolCall& each : choice.calls) {
      Json function = {{"name", each.name}, {"arguments", each.arguments}};
      json["tool_calls"].push_back(
          {{"id", each.id}, {"type", "function"}, {"function", std::move(function)}});
    }
    return json;
  }

  Json logprobs(const llm::Tokenizer& tokenizer, const std::vector<llm::TokenScore>& scores) const {
    if (!has_logprobs_) return nullptr;
    Json json = Json::object();
    json["content"] = scores_json(tokenizer, scores);
    return json;
  }

  bool has_logprobs_, is_verbose_;
};

// The conversation of a request, with its tools.
ChatRequest read_chat(const JsonView& body, const ServedModel& model) {
  ChatRequest chat;
  chat.messages = read_messages(body["messages"], model);
  chat.tools = read_tools(body["tools"]);
  read_tool_choice(body["tool_choice"], chat);
  chat.parallel_calls = body["parallel_tool_calls"].boolean_or(true);
  chat.add_generation_prompt = body["add_generation_prompt"].boolean_or(true);
  if (body["continue_final_message"].boolean_or(false) &&
      body["add_generation_prompt"].boolean_or(false))
    body["continue_final_message"].fail("and add_generation_prompt are both true; leave one out");
  read_template_variables(body["chat_template_kwargs"], body["reasoning_effort"], chat);
  return chat;
}

}  // namespace

void openai_chat_completions(const ApiCall& call) {
  const JsonView& body = call.body;
  AnswerRequest request;
  request.model = call.context.models.find(body["model"].string_or(""));
  const ChatRequest chat = read_chat(body, *request.model);
  request.options = default_options(*request.model);
  // -1 is llama.cpp's for no limit.
  const JsonView most =
      body[body["max_completion_tokens"] ? "max_completion_tokens" : "max_tokens"];
  request.options.max_tokens = most.integer_or(request.options.max_tokens, -1);
  if (most && request.options.max_tokens == 0) most.fail("is 0; it must be at least 1");
  read_sampling(body, *request.model, request.options);
  read_stop(body["stop"], request.options);
  read_response_format(body["response_format"], request.options);
  ChatFormat::Fields fields;
  fields.include_usage = body["stream_options"]["include_usage"].boolean_or(false);
  fields.has_logprobs = body["logprobs"].boolean_or(false);
  fields.is_verbose = body["verbose"].boolean_or(call.context.is_verbose);
  const int64_t top = body["top_logprobs"].integer_or(0, 0, kMaxLogprobs);
  if (top > 0 && !fields.has_logprobs) body["top_logprobs"].fail("needs \"logprobs\": true");
  if (fields.has_logprobs) request.options.scores = top;
  request.choices = body["n"].integer_or(1, 1, kMaxChoices);
  request.is_streamed = body["stream"].boolean_or(false);
  request.shows_prompts = body["return_progress"].boolean_or(false);
  request.shows_timings = body["timings_per_token"].boolean_or(false);
  prepare_chat(chat, request);

  auto format = std::make_unique<ChatFormat>(request.model->name(), fields);
  Answer::start(call.context.engine, std::move(request), std::move(format), call.response);
}

void openai_chat_tokens(const ApiCall& call) {
  AnswerRequest request;
  request.model = call.context.models.find(call.body["model"].string_or(""));
  prepare_chat(read_chat(call.body, *request.model), request);
  send_json(call.response,
            {{"object", "response.input_tokens"}, {"input_tokens", request.prompts[0].size()}});
}

}  // namespace prism::server
