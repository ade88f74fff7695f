// /completion and /infill, as llama.cpp's server has them.
#include <fmt/format.h>

#include "llm/tokenizer/fill_in_middle.h"
#include "server/api/answer.h"
#include "server/api/api.h"
#include "server/api/generation_settings.h"
#include "server/api/openai.h"
#include "server/api/request_fields.h"

namespace prism::server {
namespace {

// What the reply holds beside the text.
struct NativeFields {
  bool has_scores = false, returns_tokens = false;
  bool has_probabilities = false;  // the scores are those with which the samplers chose
  std::vector<std::string> only;   // paths such as "timings/prompt_n"; empty: all
};

class NativeFormat : public AnswerFormat {
 public:
  explicit NativeFormat(NativeFields fields) : fields_(std::move(fields)) {}

  HttpReply error(const ApiError& error) override { return openai_error(error); }
  std::string stream_error(const ApiError& error) override {
    return sse_event(openai_error_json(error).dump());
  }

  Json whole(const Answer& answer) override {
    if (answer.choices().size() == 1) return final_json(answer, answer.choices()[0], true);
    Json list = Json::array();
    for (const Choice& each : answer.choices()) list.push_back(final_json(answer, each, true));
    return list;
  }

  std::string prompt(const Answer& answer, const Choice& choice,
                     const llm::PromptProgress& progress) override {
    return event(
        {{"index", choice.index}, {"content", ""}, {"tokens", Json::array()}, {"stop", false}},
        progress_members(answer, progress));
  }

  std::string piece(const Answer& answer, const Choice& choice, const ChoicePiece& piece) override {
    Json json = {{"index", choice.index},
                 {"content", piece.event.text},
                 {"tokens", piece.event.tokens},
                 {"stop", false},
                 {"id_slot", -1},
                 {"tokens_predicted", choice.tokens.size()},
                 {"tokens_evaluated", prompt(answer, choice).size()}};
    if (fields_.has_scores)
      json["completion_probabilities"] =
          scores_json(answer.tokenizer(), piece.event.scores, fields_.has_probabilities);
    return event(std::move(json), piece_members(piece.event));
  }

  std::string end(const Answer& answer, const Choice& choice) override {
    return sse_event(final_json(answer, choice, false).dump());
  }

 private:
  static std::string event(Json json, const Json& more) {
    for (const Json::Member& each : more.members()) json[each.key] = each.value;
    return sse_event(json.dump());
  }

  static const char* stop_type(const llm::Generation& result) {
    if (result.reason == llm::StopReason::end_token) return "eos";
    if (result.reason == llm::StopReason::stop_text) return "word";
    if (result.reason == llm::StopReason::max_tokens) return "limit";
    return result.reason == llm::StopReason::context ? "limit" : "none";
  }

  static const std::vector<int32_t>& prompt(const Answer& answer, const Choice& choice) {
    const AnswerRequest& request = answer.request();
    return request.prompts[choice.index / static_cast<size_t>(request.choices)];
  }

  Json final_json(const Answer& answer, const Choice& choice, bool is_whole) const {
    const llm::Generation& result = choice.result;
    const llm::GenerationStatistics& s = result.statistics;
    const llm::Tokenizer& tokenizer = answer.tokenizer();
    const bool has_tokens = is_whole && fields_.returns_tokens;
    Json json = {{"index", choice.index},
                 {"content", is_whole ? choice.content : ""},
                 {"tokens", has_tokens ? Json(choice.tokens) : Json::array()},
                 {"id_slot", -1},
                 {"stop", true},
                 {"model", answer.request().model->name()},
                 {"tokens_predicted", s.generated_tokens},
                 {"tokens_evaluated", s.prompt_tokens},
                 {"generation_settings", generation_settings(answer.request().options, tokenizer)},
                 {"prompt", tokenizer.decode(prompt(answer, choice), true)},
                 {"tokens_cached", s.reused_tokens},
                 {"truncated", result.reason == llm::StopReason::context || s.shifts > 0},
                 {"stop_type", stop_type(result)},
                 {"stopping_word", result.stop},
                 {"has_new_line", choice.content.find('\n') != std::string::npos},
                 {"timings", timings_json(s)}};
    if (fields_.has_scores && is_whole)
      json["completion_probabilities"] =
          scores_json(tokenizer, choice.scores, fields_.has_probabilities);
    return fields_.only.empty() ? json : chosen(json);
  }

  // The members that response_fields names, by these names.
  Json chosen(const Json& all) const {
    Json json = Json::object();
    for (const std::string& path : fields_.only) {
      const Json* at = &all;
      for (size_t begin = 0; at && begin <= path.size();) {
        const size_t end = std::min(path.find('/', begin), path.size());
        at = at->find(path.substr(begin, end - begin));
        begin = end + 1;
      }
      if (at) json[path] = *at;
    }
    return json;
  }

  NativeFields fields_;
};

// Reads what /completion and /infill have in common, and starts the answer.
void start(const ApiCall& call, AnswerRequest request) {
  const JsonView& body = call.body;
  read_sampling(body, *request.model, request.options);
  read_stop(body["stop"], request.options);
  request.options.max_tokens = body[body["n_predict"] ? "n_predict" : "max_tokens"].integer_or(
      request.options.max_tokens, -2);
  if (request.options.max_tokens < 0) request.options.max_tokens = -1;
  request.options.keep = body["n_keep"].integer_or(request.options.keep, -1);
  request.choices = body["n_cmpl"].integer_or(1, 1, kMaxChoices);
  NativeFields fields;
  const int64_t scores = body["n_probs"].integer_or(0, 0);
  fields.has_scores = scores > 0;
  if (fields.has_scores) request.options.scores = scores;
  fields.has_probabilities = body["post_sampling_probs"].boolean_or(false);
  request.options.scores_choices = fields.has_probabilities;
  fields.returns_tokens = body["return_tokens"].boolean_or(false);
  for (const JsonView& each : body["response_fields"].items()) fields.only.push_back(each.string());
  request.is_streamed = body["stream"].boolean_or(false);
  request.shows_prompts = body["return_progress"].boolean_or(false);
  request.shows_timings = body["timings_per_token"].boolean_or(false);
  Answer::start(call.context.engine, std::move(request),
                std::make_unique<NativeFormat>(std::move(fields)), call.response);
}

}  // namespace

void native_completion(const ApiCall& call) {
  AnswerRequest request;
  request.model = call.context.models.find(call.body["model"].string_or(""));
  request.prompts = read_prompts(call.body["prompt"], *request.model);
  request.options = default_options(*request.model);
  start(call, std::move(request));
}

void native_infill(const ApiCall& call) {
  const JsonView& body = call.body;
  AnswerRequest request;
  request.model = call.context.models.find(body["model"].string_or(""));
  const llm::Tokenizer& tokenizer = request.model->tokenizer();
  llm::FillInMiddle::Parts parts;
  parts.before = body["input_prefix"].string();
  parts.after = body["input_suffix"].string();
  parts.begun = body["prompt"].string_or("");
  for (const JsonView& each : body["input_extra"].items())
    parts.others.push_back({each["filename"].string(), each["text"].string()});
  const auto fill = llm::FillInMiddle::of(request.model->file(), tokenizer);
  if (!fill)
    throw ApiError(501, "this model cannot fill in the middle; its vocabulary has no such tokens");
  request.prompts.push_back(fill->prompt(tokenizer, parts));
  request.text_field.clear();  // several fields make it
  request.options = default_options(*request.model);
  start(call, std::move(request));
}

}  // namespace prism::server
