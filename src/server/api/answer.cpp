// Collects the events of the engine and sends them in an API's format.
#include "server/api/answer.h"

#include <random>
#include <utility>

#include <fmt/format.h>

namespace prism::server {

using Kind = llm::MessagePart::Kind;

std::string AnswerRequest::field_of(size_t prompt) const {
  return prompts.size() == 1 ? text_field : fmt::format("{}[{}]", text_field, prompt);
}

Answer::Answer(Engine& engine, AnswerRequest request, std::unique_ptr<AnswerFormat> format,
               HttpResponse response)
    : engine_(engine),
      request_(std::move(request)),
      format_(std::move(format)),
      response_(std::move(response)) {
  const size_t count = request_.prompts.size() * static_cast<size_t>(request_.choices);
  choices_.resize(count);
  left_ = count;
  for (size_t i = 0; i < count; ++i) {
    choices_[i].index = i;
    if (request_.parser) choices_[i].parser.emplace(request_.parser());
  }
}

void Answer::start(Engine& engine, AnswerRequest request, std::unique_ptr<AnswerFormat> format,
                   const HttpResponse& response) {
  const auto self =
      std::make_shared<Answer>(engine, std::move(request), std::move(format), response);
  std::vector<TextJob> jobs;
  for (size_t i = 0; i < self->choices_.size(); ++i) {
    TextJob job{.id = engine.new_id(),
                .model = self->request_.model,
                .prompt = self->request_.prompts[i / static_cast<size_t>(self->request_.choices)],
                .options = self->request_.options};
    job.options.sampler.seed += i;
    job.wants_statistics = self->request_.is_streamed && self->request_.shows_timings;
    job.on_begin = [self](double load_seconds) { self->on_begin(load_seconds); };
    if (self->request_.is_streamed && self->request_.shows_prompts)
      job.on_prompt = [self, i](llm::PromptProgress progress) { self->on_prompt(i, progress); };
    job.on_text = [self, i](TextEvent event) { self->on_text(i, std::move(event)); };
    job.on_end = [self, i](llm::Generation result) { self->on_end(i, std::move(result)); };
    self->ids_.push_back(job.id);
    jobs.push_back(std::move(job));
  }
  const std::vector<uint64_t> ids = self->ids_;
  const bool is_streamed = self->request_.is_streamed;
  std::string keep_alive = self->format_->keep_alive();
  HttpHeaders headers = self->stream_headers();
  engine.submit(std::move(jobs), std::move(self->request_.before));
  // Not before: a full queue has a status.
  if (is_streamed && !keep_alive.empty())
    response.start_when_quiet(200, std::move(headers), std::move(keep_alive));
  response.on_disconnect([&engine, ids] {
    for (const uint64_t id : ids) engine.cancel(id);
  });
}

HttpHeaders Answer::stream_headers() const {
  return {{"content-type", format_->stream_type()},
          {"cache-control", "no-cache"},
          {"x-accel-buffering", "no"}};
}

void Answer::on_begin(double load_seconds) {
  load_seconds_ += load_seconds;
  if (has_begun_ || has_failed_ || !request_.is_streamed) return;
  has_begun_ = true;
  response_.start(200, stream_headers(), format_->keep_alive());
  response_.write(format_->begin(*this));
}

void Answer::on_prompt(size_t index, const llm::PromptProgress& progress) {
  if (!has_failed_) response_.write(format_->prompt(*this, choices_[index], progress));
}

void Answer::on_text(size_t index, TextEvent event) {
  if (has_failed_) return;
  Choice& choice = choices_[index];
  if (choice.is_done()) return;
  llm::MessageParts parts;
  if (choice.parser)
    parts = choice.parser->feed(event.text);
  else if (!event.text.empty())
    parts.push_back({Kind::content, event.text});
  add(choice, std::move(parts), std::move(event));
  if (choice.is_done()) engine_.cancel(ids_[index]);
}

void Answer::add(Choice& choice, llm::MessageParts parts, TextEvent event) {
  for (const llm::MessagePart& each : parts) {
    if (each.kind == Kind::content)
      choice.content += each.text;
    else if (each.kind == Kind::reasoning)
      choice.reasoning += each.text;
    else if (each.kind == Kind::call_begin)
      choice.calls.push_back({random_id("call_"), each.text, ""});
    else
      choice.calls.back().arguments += each.text;
  }
  if (!parts.empty() && parts.back().kind == Kind::reasoning)
    choice.reasoning_tokens += static_cast<int64_t>(event.tokens.size());
  choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
  choice.scores.insert(choice.scores.end(), event.scores.begin(), event.scores.end());
  if (!request_.is_streamed) return;
  if (choice.parser) {
    choice.held_scores.insert(choice.held_scores.end(), event.scores.begin(), event.scores.end());
    event.scores.clear();
    if (!parts.empty()) event.scores = std::exchange(choice.held_scores, {});
  }
  if (!parts.empty()) {
    const Kind last = parts.back().kind;
    choice.end_kind = last == Kind::call_begin ? Kind::call_arguments : last;
  }
  if (parts.empty() && event.tokens.empty()) return;
  response_.write(format_->piece(*this, choice, {std::move(parts), std::move(event)}));
}

void Answer::on_end(size_t index, llm::Generation result) {
  if (has_failed_) return;
  Choice& choice = choices_[index];
  if (choice.is_done()) {
    result.reason = llm::StopReason::end_token;
    result.failure = nullptr;
  }
  if (result.failure)
    return fail(ApiError::from(result.failure,
                               request_.field_of(index / static_cast<size_t>(request_.choices))));
  if (choice.parser) {
    llm::MessageParts rest = choice.parser->finish();
    if (rest.empty() && !choice.held_scores.empty()) rest.push_back({choice.end_kind, ""});
    add(choice, std::move(rest), {});
  }
  choice.result = std::move(result);
  --left_;
  if (request_.is_streamed) {
    on_begin(0);
    std::string last = format_->end(*this, choice);
    if (left_ == 0) last += format_->finish(*this);
    response_.write(std::move(last));
    if (left_ == 0) response_.finish();
  } else if (left_ == 0) {
    response_.send(
        {200, {{"content-type", "application/json"}}, format_->whole(*this).dump() + "\n"});
  }
}

void Answer::fail(const ApiError& error) {
  has_failed_ = true;
  for (const uint64_t id : ids_) engine_.cancel(id);
  response_.fail(format_->error(error), format_->stream_error(error));
}

bool is_cut(const Choice& choice) {
  const llm::StopReason reason = choice.result.reason;
  return reason == llm::StopReason::max_tokens || reason == llm::StopReason::context;
}

AnswerUsage Answer::usage() const {
  AnswerUsage usage;
  for (const Choice& each : choices_) {
    usage.generated_tokens += each.result.statistics.generated_tokens;
    usage.reasoning_tokens += each.reasoning_tokens;
    usage.proposed_tokens += each.result.statistics.proposed_tokens;
    usage.accepted_tokens += each.result.statistics.accepted_tokens;
    if (each.index % static_cast<size_t>(request_.choices) != 0) continue;
    usage.prompt_tokens += each.result.statistics.prompt_tokens;
    usage.cached_tokens += each.result.statistics.reused_tokens;
  }
  return usage;
}

std::string sse_event(std::string_view json, std::string_view name) {
  if (name.empty()) return fmt::format("data: {}\n\n", json);
  return fmt::format("event: {}\ndata: {}\n\n", name, json);
}

std::string random_id(std::string_view prefix, size_t length) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  thread_local std::mt19937_64 random(std::random_device{}());
  std::string id(prefix);
  for (size_t i = 0; i < length; ++i) id += kLetters[random() % kLetters.size()];
  return id;
}

}  // namespace prism::server
