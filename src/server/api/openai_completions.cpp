// /v1/completions.
#include <algorithm>

#include <fmt/format.h>

#include "base/utf8.h"
#include "llm/generate/prompt_too_long.h"
#include "llm/tokenizer/fill_in_middle.h"
#include "server/api/api.h"
#include "server/api/openai.h"
#include "server/api/request_fields.h"

namespace prism::server {
namespace {

constexpr int64_t kDefaultTokens = 16;  // as OpenAI's API defines it

using PromptScores = std::vector<std::vector<llm::TokenScore>>;  // of each prompt

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

class CompletionFormat : public OpenAiFormat {
 public:
  struct Fields {
    bool include_usage = false, has_logprobs = false, has_echo = false;
    // With echo and logprobs; complete before the texts begin.
    std::shared_ptr<PromptScores> prompt_scores = {};
  };
  CompletionFormat(std::string model, Fields fields)
      : OpenAiFormat("cmpl-", std::move(model), fields.include_usage), fields_(std::move(fields)) {}

  Json whole(const Answer& answer) override {
    Json choices = Json::array();
    for (const Choice& each : answer.choices()) {
      const std::string before = echo(answer, each);
      Scores scores(answer.tokenizer());
      add_prompt(answer, each, scores);
      for (const llm::TokenScore& score : each.scores) scores.add(score);
      choices.push_back({{"index", each.index},
                         {"text", before + each.content},
                         {"logprobs", fields_.has_logprobs ? scores.json() : Json()},
                         {"finish_reason", openai_finish_reason(each)}});
    }
    return completion(answer, chunk_object(), std::move(choices));
  }

  std::string begin(const Answer& answer) override {
    if (!fields_.has_echo) return {};
    std::string events;
    for (const Choice& each : answer.choices()) {
      Scores scores(answer.tokenizer());
      add_prompt(answer, each, scores);
      events += text_chunk(each, echo(answer, each),
                           fields_.has_logprobs ? scores.json().dump() : "null", "null");
    }
    return events;
  }

  std::string prompt(const Answer& answer, const Choice& choice,
                     const llm::PromptProgress& progress) override {
    return text_chunk(choice, "", "null", "null", progress_members(answer, progress));
  }

  std::string piece(const Answer& answer, const Choice& choice, const ChoicePiece& piece) override {
    const Json more = piece_members(piece.event);
    if (!fields_.has_logprobs) return text_chunk(choice, piece.event.text, "null", "null", more);
    const std::string before =
        echo(answer, choice) +
        choice.content.substr(0, choice.content.size() - piece.event.text.size());
    Scores scores(answer.tokenizer(), characters(before));
    for (const llm::TokenScore& each : piece.event.scores) scores.add(each);
    return text_chunk(choice, piece.event.text, scores.json().dump(), "null", more);
  }

  std::string end(const Answer&, const Choice& choice) override {
    return text_chunk(choice, "", "null", Json(openai_finish_reason(choice)).dump(),
                      {{"timings", timings_json(choice.result.statistics)}});
  }

 private:
  const char* chunk_object() const override { return "text_completion"; }

  std::string text_chunk(const Choice& choice, const std::string& text, const std::string& scores,
                         const std::string& reason, const Json& more = nullptr) const {
    return chunk(chunk_object(),
                 fmt::format(R"({{"index":{},"text":{},"logprobs":{},"finish_reason":{}}})",
                             choice.index, Json(text).dump(), scores, reason),
                 more);
  }

  // The scores of tokens as this API writes them. Offsets count the characters of the text.
  class Scores {
   public:
    explicit Scores(const llm::Tokenizer& tokenizer, size_t offset = 0)
        : tokenizer_(tokenizer), offset_(offset) {}

    void add(const llm::TokenScore& score) { add(score, tokenizer_.piece(score.id, true)); }
    void add(const llm::TokenScore& score, const std::string& piece) {
      tokens_.push_back(name(piece));
      values_.push_back(score.logprob ? Json(finite_logprob(*score.logprob)) : Json());
      Json top = score.logprob ? Json::object() : Json();
      for (const llm::RankedToken& ranked : score.top)
        top[name(tokenizer_.piece(ranked.id, true))] = finite_logprob(ranked.logprob);
      tops_.push_back(std::move(top));
      offsets_.push_back(offset_);
      offset_ += characters(piece);
    }

    Json json() const {
      return {{"tokens", tokens_},
              {"token_logprobs", values_},
              {"top_logprobs", tops_},
              {"text_offset", offsets_}};
    }

   private:
    // The text of a token. Parts of characters have names such as "bytes:\xe6\x97", as in
    // OpenAI's API: as text they would all be U+FFFD, and one key of top_logprobs would stand for
    // several.
    static std::string name(const std::string& piece) {
      if (utf8_valid_end(piece, 0) == piece.size()) return piece;
      std::string bytes = "bytes:";
      for (const char each : piece)
        bytes += fmt::format("\\x{:02x}", static_cast<unsigned char>(each));
      return bytes;
    }

    const llm::Tokenizer& tokenizer_;
    size_t offset_;
    Json tokens_ = Json::array(), values_ = Json::array(), tops_ = Json::array(),
         offsets_ = Json::array();
  };

  static size_t prompt_of(const Answer& answer, const Choice& choice) {
    return choice.index / static_cast<size_t>(answer.request().choices);
  }

  std::string echo(const Answer& answer, const Choice& choice) const {
    if (!fields_.has_echo) return {};
    return answer.tokenizer().decode(answer.request().prompts[prompt_of(answer, choice)]);
  }

  // The tokens of the prompt as they stand in the text: a token such as <s> is empty there, and the
  // space that encoding puts first is not in it.
  void add_prompt(const Answer& answer, const Choice& choice, Scores& scores) const {
    if (!fields_.prompt_scores) return;
    const std::vector<llm::TokenScore>& all = fields_.prompt_scores->at(prompt_of(answer, choice));
    std::vector<std::string> pieces;
    size_t bytes = 0;
    for (const llm::TokenScore& each : all) {
      pieces.push_back(answer.tokenizer().piece(each.id));
      bytes += pieces.back().size();
    }
    bool has_added_space = bytes > echo(answer, choice).size();
    for (size_t i = 0; i < all.size(); ++i) {
      if (has_added_space && pieces[i].starts_with(' ')) {
        pieces[i].erase(0, 1);
        has_added_space = false;
      }
      scores.add(all[i], pieces[i]);
    }
  }

  Fields fields_;
};

// A prompt for the text between each prompt and the suffix.
std::vector<std::vector<int32_t>> fill_prompts(const JsonView& body, const ServedModel& model) {
  const auto fill = llm::FillInMiddle::of(model.file(), model.tokenizer());
  if (!fill)
    body["suffix"].fail(
        "needs a model that fills in the middle; the vocabulary of this one has no such tokens");
  if (body["echo"].boolean_or(false)) body["echo"].fail("and suffix are both given; leave one out");
  const auto prompt = [&](const JsonView& each) {
    return fill->prompt(model.tokenizer(),
                        {.before = each.string(), .after = body["suffix"].string()});
  };
  std::vector<std::vector<int32_t>> prompts;
  if (body["prompt"].is_array())
    for (const JsonView& each : body["prompt"].items()) prompts.push_back(prompt(each));
  else
    prompts.push_back(prompt(body["prompt"]));
  if (prompts.empty()) body["prompt"].fail("is empty; it must have at least one prompt");
  return prompts;
}

}  // namespace

void openai_completions(const ApiCall& call) {
  const JsonView& body = call.body;
  AnswerRequest request;
  request.model = call.context.models.find(body["model"].string_or(""));
  const bool fills = body["suffix"] && !body["suffix"].string().empty();
  request.prompts =
      fills ? fill_prompts(body, *request.model) : read_prompts(body["prompt"], *request.model);
  request.options = default_options(*request.model);
  const int64_t most = request.options.max_tokens < 0 ? kDefaultTokens : request.options.max_tokens;
  request.options.max_tokens = body["max_tokens"].integer_or(most, -1);
  read_sampling(body, *request.model, request.options);
  read_stop(body["stop"], request.options);
  read_response_format(body["response_format"], request.options);
  request.choices = body["n"].integer_or(1, 1, kMaxChoices);
  if (const JsonView best = body["best_of"]; best && best.integer(1) > request.choices)
    best.fail("is larger than n; this server returns every text that it generates");
  request.is_streamed = body["stream"].boolean_or(false);
  request.shows_prompts = body["return_progress"].boolean_or(false);
  request.shows_timings = body["timings_per_token"].boolean_or(false);
  CompletionFormat::Fields fields;
  fields.include_usage = body["stream_options"]["include_usage"].boolean_or(false);
  fields.has_logprobs = static_cast<bool>(body["logprobs"]);
  fields.has_echo = body["echo"].boolean_or(false);
  if (fields.has_logprobs) request.options.scores = body["logprobs"].integer(0, kMaxLogprobs);

  if (fields.has_echo && fields.has_logprobs) {
    fields.prompt_scores = std::make_shared<PromptScores>();
    // One prompt between two steps.
    request.before = [&engine = call.context.engine, scores = fields.prompt_scores,
                      asked = request](EngineModel& on) {
      const size_t next = scores->size();
      try {
        scores->push_back(on.score(asked.prompts[next], asked.options.scores));
        engine.count_step(std::ssize(asked.prompts[next]));
      } catch (const llm::PromptTooLong&) {
        throw ApiError::from(std::current_exception(), asked.field_of(next));
      }
      return scores->size() == asked.prompts.size();
    };
  }
  auto format = std::make_unique<CompletionFormat>(request.model->name(), std::move(fields));
  Answer::start(call.context.engine, std::move(request), std::move(format), call.response);
}

}  // namespace prism::server
