// Errors, usage, ids and streams as OpenAI's API writes them.
#include "server/api/openai.h"

#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "server/api/api.h"
#include "server/version.h"

namespace prism::server {
namespace {

// What answers depend on beside the request.
std::string fingerprint() { return "build-" + version(); }

}  // namespace

Json openai_error_json(const ApiError& error) {
  const int status = error.status();
  const char* type = status == 401   ? "authentication_error"
                     : status == 403 ? "permission_error"
                     : status == 404 ? "not_found_error"
                     : status == 429 ? "rate_limit_error"
                     : status == 501 ? "not_supported_error"
                     : status == 503 ? "unavailable_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  Json json = {{"message", error.what()},
               {"type", error.type().empty() ? type : error.type()},
               {"param", error.field().empty() ? Json() : Json(error.field())},
               {"code", error.code().empty() ? Json() : Json(error.code())}};
  for (const Json::Member& each : error.figures().members()) json[each.key] = each.value;
  return {{"error", std::move(json)}};
}

HttpReply openai_error(const ApiError& error) {
  HttpHeaders headers = error.headers();
  headers.emplace_back("content-type", "application/json");
  return {error.status(), std::move(headers), openai_error_json(error).dump() + "\n"};
}

Json openai_usage(const AnswerUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.generated_tokens},
          {"total_tokens", usage.prompt_tokens + usage.generated_tokens},
          {"prompt_tokens_details", Json{{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details",
           Json{{"reasoning_tokens", usage.reasoning_tokens},
                {"accepted_prediction_tokens", usage.accepted_tokens},
                {"rejected_prediction_tokens", usage.proposed_tokens - usage.accepted_tokens}}}};
}

Json timings_json(const llm::GenerationStatistics& s) {
  const auto each_ms = [](double seconds, int64_t count) {
    return count > 0 ? seconds * 1000 / static_cast<double>(count) : 0;
  };
  const int64_t computed = s.prompt_tokens - s.reused_tokens;
  return {{"cache_n", s.reused_tokens},
          {"prompt_n", computed},
          {"prompt_ms", s.prompt_seconds * 1000},
          {"prompt_per_token_ms", each_ms(s.prompt_seconds, computed)},
          {"prompt_per_second", s.prompt_rate()},
          {"predicted_n", s.generated_tokens},
          {"predicted_ms", s.generation_seconds * 1000},
          // The first token comes with the prompt.
          {"predicted_per_token_ms", each_ms(s.generation_seconds, s.generated_tokens - 1)},
          {"predicted_per_second", s.generation_rate()},
          {"first_token_ms", s.first_token_seconds * 1000},
          {"draft_n", s.proposed_tokens},
          {"draft_n_accepted", s.accepted_tokens}};
}

Json progress_members(const Answer& answer, const llm::PromptProgress& progress) {
  Json members = Json::object();
  members["prompt_progress"] = {{"total", progress.tokens},
                                {"cache", progress.reused},
                                {"processed", progress.read},
                                {"time_ms", progress.seconds * 1000}};
  if (!answer.request().shows_timings) return members;
  llm::GenerationStatistics s;
  s.prompt_tokens = progress.read;
  s.reused_tokens = progress.reused;
  if (progress.read > progress.reused) s.prompt_seconds = progress.seconds;
  members["timings"] = timings_json(s);
  return members;
}

Json piece_members(const TextEvent& event) {
  if (!event.statistics) return nullptr;
  Json members = Json::object();
  members["timings"] = timings_json(*event.statistics);
  return members;
}

const char* openai_finish_reason(const Choice& choice) {
  if (is_cut(choice)) return "length";
  return choice.calls.empty() ? "stop" : "tool_calls";
}

double finite_logprob(double logprob) { return std::isfinite(logprob) ? logprob : -9999.0; }

static Json token_json(const llm::Tokenizer& tokenizer, int32_t token, double logprob,
                       bool as_probability) {
  const std::string piece = tokenizer.piece(token, true);
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  Json json = {{"id", token}, {"token", piece}, {"bytes", std::move(bytes)}};
  if (as_probability)
    json["prob"] = std::exp(logprob);
  else
    json["logprob"] = finite_logprob(logprob);
  return json;
}

Json scores_json(const llm::Tokenizer& tokenizer, const std::vector<llm::TokenScore>& scores,
                 bool as_probabilities) {
  Json list = Json::array();
  for (const llm::TokenScore& each : scores) {
    Json token = token_json(tokenizer, each.id, each.logprob.value_or(0), as_probabilities);
    Json top = Json::array();
    for (const llm::RankedToken& ranked : each.top)
      top.push_back(token_json(tokenizer, ranked.id, ranked.logprob, as_probabilities));
    token[as_probabilities ? "top_probs" : "top_logprobs"] = std::move(top);
    list.push_back(std::move(token));
  }
  return list;
}

Json OpenAiFormat::completion(const Answer& answer, const char* object, Json choices) const {
  return {{"id", id_},
          {"object", object},
          {"created", created_},
          {"model", model_},
          {"system_fingerprint", fingerprint()},
          {"choices", std::move(choices)},
          {"usage", openai_usage(answer.usage())},
          {"timings", timings_json(answer.choices()[0].result.statistics)}};
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

OpenAiFormat::OpenAiFormat(std::string id_prefix, std::string model, bool include_usage)
    : id_(random_id(id_prefix)),
      model_(std::move(model)),
      created_(unix_seconds()),
      include_usage_(include_usage) {}

HttpReply OpenAiFormat::error(const ApiError& error) { return openai_error(error); }

std::string OpenAiFormat::stream_error(const ApiError& error) {
  return sse_event(openai_error_json(error).dump());
}

std::string OpenAiFormat::chunk(const char* object, const std::string& choice,
                                const Json& more) const {
  // The same for every token of an answer.
  if (chunk_head_.empty())
    chunk_head_ = fmt::format(R"(data: {{"id":"{}","object":"{}","created":{},"model":{},)"
                              R"("system_fingerprint":"{}","choices":[)",
                              id_, object, created_, Json(model_).dump(), fingerprint());
  std::string event;
  event.reserve(chunk_head_.size() + choice.size() + 32);
  ((event += chunk_head_) += choice) += ']';
  for (const Json::Member& each : more.members())
    event += fmt::format(",{}:{}", Json(each.key).dump(), each.value.dump());
  if (include_usage_ && !more.find("usage")) event += ",\"usage\":null";
  return event += "}\n\n";
}

std::string OpenAiFormat::finish(const Answer& answer) {
  std::string last;
  if (include_usage_)
    last = chunk(chunk_object(), "",
                 {{"usage", openai_usage(answer.usage())},
                  {"timings", timings_json(answer.choices()[0].result.statistics)}});
  return last + sse_event("[DONE]");
}

}  // namespace prism::server
