// /api/generate, /api/chat, /api/embed and /api/embeddings of Ollama's API.
#include <chrono>

#include <fmt/format.h>

#include "llm/tokenizer/fill_in_middle.h"
#include "server/api/chat_request.h"
#include "server/api/embeddings.h"
#include "server/api/ollama.h"
#include "server/api/openai.h"
#include "server/api/request_fields.h"

namespace prism::server {
namespace {

using Kind = llm::MessagePart::Kind;

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

// Answers of generate and chat: lines of JSON.
class OllamaFormat : public AnswerFormat {
 public:
  OllamaFormat(bool is_chat, bool has_logprobs) : is_chat_(is_chat), has_logprobs_(has_logprobs) {}

  HttpReply error(const ApiError& error) override { return ollama_error(error); }
  const char* stream_type() const override { return "application/x-ndjson"; }
  const char* keep_alive() const override { return ""; }
  std::string stream_error(const ApiError& error) override {
    return Json{{"error", error.what()}}.dump() + "\n";
  }

  Json whole(const Answer& answer) override {
    const Choice& choice = answer.choices()[0];
    Json json = last(answer, choice, choice.content, choice.reasoning, calls_json(choice));
    if (has_logprobs_) json["logprobs"] = scores_json(answer.tokenizer(), choice.scores);
    return json;
  }

  std::string piece(const Answer& answer, const Choice&, const ChoicePiece& piece) override {
    std::string lines;
    bool has_scores = has_logprobs_;
    for (const llm::MessagePart& each : piece.parts) {
      const bool is_content = each.kind == Kind::content;
      if (!is_content && each.kind != Kind::reasoning) continue;  // calls are sent whole at the end
      Json json = line(answer, is_content ? each.text : "", is_content ? "" : each.text, nullptr);
      if (std::exchange(has_scores, false))
        json["logprobs"] = scores_json(answer.tokenizer(), piece.event.scores);
      lines += json.dump() + "\n";
    }
    if (has_scores && !piece.event.scores.empty()) {  // those of a call
      Json json = line(answer, "", "", nullptr);
      json["logprobs"] = scores_json(answer.tokenizer(), piece.event.scores);
      lines += json.dump() + "\n";
    }
    return lines;
  }

  std::string end(const Answer& answer, const Choice& choice) override {
    std::string lines;
    if (!choice.calls.empty()) lines = line(answer, "", "", calls_json(choice)).dump() + "\n";
    return lines + last(answer, choice, "", "", nullptr).dump() + "\n";
  }

 private:
  using Clock = std::chrono::steady_clock;

  static Json calls_json(const Choice& choice) {
    Json calls;
    for (size_t i = 0; i < choice.calls.size(); ++i) {
      Json function = {{"index", i}, {"name", choice.calls[i].name}};
      function["arguments"] = arguments_json(choice.calls[i].arguments);
      Json call = {{"id", choice.calls[i].id}};
      call["function"] = std::move(function);
      calls.push_back(std::move(call));
    }
    return calls;
  }

  Json line(const Answer& answer, const std::string& text, const std::string& thinking,
            Json calls) const {
    Json json = {{"model", answer.request().model->name()},
                 {"created_at", time_text(std::time(nullptr))}};
    if (is_chat_) {
      Json message = {{"role", "assistant"}, {"content", text}};
      if (!thinking.empty()) message["thinking"] = thinking;
      if (!calls.is_null()) message["tool_calls"] = std::move(calls);
      json["message"] = std::move(message);
    } else {
      json["response"] = text;
      if (!thinking.empty()) json["thinking"] = thinking;
    }
    json["done"] = false;
    return json;
  }

  Json last(const Answer& answer, const Choice& choice, const std::string& text,
            const std::string& thinking, Json calls) const {
    const llm::GenerationStatistics& s = choice.result.statistics;
    Json json = line(answer, text, thinking, std::move(calls));
    json["done"] = true;
    json["done_reason"] = is_cut(choice) ? "length" : "stop";
    json["total_duration"] =
        nanoseconds(std::chrono::duration<double>(Clock::now() - asked_).count());
    json["load_duration"] = nanoseconds(answer.load_seconds());
    json["prompt_eval_count"] = s.prompt_tokens;
    json["prompt_eval_duration"] = nanoseconds(s.prompt_seconds);
    json["eval_count"] = s.generated_tokens;
    json["eval_duration"] = nanoseconds(s.generation_seconds);
    return json;
  }

  bool is_chat_, has_logprobs_;
  Clock::time_point asked_ = Clock::now();
};

void read_options(const JsonView& body, AnswerRequest& request) {
  const JsonView options = body["options"];
  request.options = default_options(*request.model);
  request.options.max_tokens = options["num_predict"].integer_or(request.options.max_tokens, -2);
  if (request.options.max_tokens < 0) request.options.max_tokens = -1;
  read_sampling(options, *request.model, request.options);
  read_stop(options["stop"], request.options);
  if (const JsonView format = body["format"]) {
    static const Json kAnyObject = {{"type", "object"}};
    if (!format.is_string()) return read_schema(format, request.options);
    if (format.string().empty()) return;
    if (format.string() != "json")
      format.fail(fmt::format("is \"{}\"; it must be json or a JSON schema", format.string()));
    read_schema(JsonView(kAnyObject, format.path()), request.options);
  }
}

// Reads the fields of the request that generate and chat have in common.
void read_fields(const JsonView& body, AnswerRequest& request) {
  read_options(body, request);
  request.is_streamed = body["stream"].boolean_or(true);
  const int64_t top = body["top_logprobs"].integer_or(0, 0, 20);
  if (body["logprobs"].boolean_or(false)) request.options.scores = top;
}

// think: true or false, or how much: "low", "medium", "high".
void read_think(const JsonView& think, ChatRequest& chat) {
  if (!think) return;
  if (think.is_string()) {
    const std::string& effort = think.string();
    if (effort != "low" && effort != "medium" && effort != "high")
      think.fail(fmt::format("is \"{}\"; it must be true, false, low, medium or high", effort));
    return read_template_variables(JsonView(Json()), think, chat);
  }
  chat.extra = Json{{"enable_thinking", think.boolean()}}.dump();
}

void start(const ApiCall& call, AnswerRequest request, bool is_chat) {
  const auto model = request.model;
  const KeepAlive keep(call);
  auto format = std::make_unique<OllamaFormat>(is_chat, request.options.scores >= 0);
  keep.apply(call.context.engine, *model);
  Answer::start(call.context.engine, std::move(request), std::move(format), call.response);
}

// A request without a text only loads the model, or unloads it with "keep_alive": 0.
void load(const ApiCall& call, std::shared_ptr<ServedModel> model, Json json) {
  const KeepAlive keep(call);
  if (keep.is_zero()) {
    call.context.engine.unload(model->name());
    return send_json(call.response, json);
  }
  keep.apply(call.context.engine, *model);
  answer_with(
      call, std::move(model), [json](EngineModel&) { return json_reply(json); }, ollama_error);
}

// The answer of generate and chat to such a request.
Json load_json(const ApiCall& call, const ServedModel& model, bool is_chat) {
  Json json = {{"model", model.name()}, {"created_at", time_text(std::time(nullptr))}};
  if (is_chat)
    json["message"] = {{"role", "assistant"}, {"content", ""}};
  else
    json["response"] = "";
  json["done"] = true;
  json["done_reason"] = KeepAlive(call).is_zero() ? "unload" : "load";
  return json;
}

}  // namespace

HttpReply ollama_error(const ApiError& error) {
  HttpHeaders headers = error.headers();
  headers.emplace_back("content-type", "application/json");
  return {error.status(), std::move(headers), Json{{"error", error.what()}}.dump() + "\n"};
}

void ollama_generate(const ApiCall& call) {
  const JsonView& body = call.body;
  AnswerRequest request;
  request.model = ollama_model(call);
  const std::string prompt = body["prompt"].string_or("");
  if (!body["images"].items().empty()) body["images"].fail("cannot be read: text only");
  read_fields(body, request);
  if (prompt.empty()) return load(call, request.model, load_json(call, *request.model, false));
  const llm::Tokenizer& tokenizer = request.model->tokenizer();
  if (const std::string suffix = body["suffix"].string_or(""); !suffix.empty()) {
    const auto fill = llm::FillInMiddle::of(request.model->file(), tokenizer);
    if (!fill) body["suffix"].fail("needs a model that fills in the middle");
    request.prompts.push_back(fill->prompt(tokenizer, {.before = prompt, .after = suffix}));
  } else if (body["raw"].boolean_or(false)) {
    request.prompts.push_back(tokenizer.encode(prompt));
  } else {
    ChatRequest chat;
    chat.field = "prompt";
    if (const std::string system = body["system"].string_or(""); !system.empty())
      chat.messages.push_back({.role = "system", .content = system});
    chat.messages.push_back({.role = "user", .content = prompt});
    read_think(body["think"], chat);
    prepare_chat(chat, request);
  }
  start(call, std::move(request), false);
}

void ollama_chat(const ApiCall& call) {
  const JsonView& body = call.body;
  AnswerRequest request;
  request.model = ollama_model(call);
  read_fields(body, request);
  if (body["messages"].is_array() && body["messages"].items().empty())
    return load(call, request.model, load_json(call, *request.model, true));
  ChatRequest chat;
  for (const JsonView& each : body["messages"].items())
    if (each.is_object() && !each["images"].items().empty())
      each["images"].fail("cannot be read: text only");
  chat.messages = read_messages(body["messages"], *request.model, kOllamaRoles);
  chat.tools = read_tools(body["tools"]);
  read_think(body["think"], chat);
  prepare_chat(chat, request);
  start(call, std::move(request), true);
}

void ollama_embed(const ApiCall& call) {
  const JsonView& body = call.body;
  const auto named = ollama_model(call, true);
  const auto model = call.context.models.embedder_for(named);
  const JsonView input = body["input"];
  if ((input.is_array() && input.items().empty()) || (input.is_string() && input.string().empty()))
    return load(call, model, {{"model", model->name()}, {"embeddings", Json::array()}});
  EmbedRequest request = read_inputs(input, *named);
  request.dimensions = body["dimensions"].integer_or(0, 1);
  request.truncate = body["truncate"].boolean_or(true);
  KeepAlive(call).apply(call.context.engine, *model);
  const auto asked = std::chrono::steady_clock::now();
  embed_texts(
      call, model, std::move(request), ollama_error,
      [name = model->name(), asked](std::vector<std::vector<float>> vectors, int64_t tokens) {
        Json list = Json::array();
        for (const std::vector<float>& each : vectors) list.push_back(each);
        Json json = {{"model", name}};
        json["embeddings"] = std::move(list);
        json["total_duration"] = nanoseconds(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count());
        json["load_duration"] = 0;
        json["prompt_eval_count"] = tokens;
        return json;
      });
}

void ollama_embeddings(const ApiCall& call) {
  const auto named = ollama_model(call, true);
  const auto model = call.context.models.embedder_for(named);
  const JsonView prompt = call.body["prompt"];
  if (prompt.is_string() && prompt.string().empty()) {
    Json json = Json::object();
    json["embedding"] = Json::array();
    return load(call, model, std::move(json));
  }
  EmbedRequest request = read_inputs(prompt, *named);
  KeepAlive(call).apply(call.context.engine, *model);
  embed_texts(call, model, std::move(request), ollama_error,
              [](std::vector<std::vector<float>> vectors, int64_t) {
                Json json = Json::object();
                json["embedding"] = vectors[0];
                return json;
              });
}

}  // namespace prism::server
