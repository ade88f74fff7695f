// Implements the token, text and statistics bookkeeping of one generation.
#include "llm/generate/sequence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "llm/generate/candidates.h"
#include "llm/model/finite.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

double seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::unordered_set<int32_t> breakers(const Tokenizer& tokenizer,
                                     const std::vector<std::string>& texts) {
  std::unordered_set<int32_t> tokens;
  for (size_t i = 0; i < tokenizer.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    const std::string piece = tokenizer.piece(id);
    for (const std::string& each : texts)
      if (!each.empty() && piece.find(each) != piece.npos) tokens.insert(id);
  }
  return tokens;
}

SamplerOptions without_suppressed(SamplerOptions options, const Tokenizer& tokenizer) {
  for (const int32_t token : tokenizer.suppressed())
    options.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
  return options;
}

// Scores a token by the probabilities with which it was chosen.
TokenScore score_choice(const std::vector<std::pair<int32_t, double>>& choices, int32_t token,
                        int64_t top) {
  TokenScore score{token, std::nullopt, {}};
  for (const auto& [id, probability] : choices) {
    if (id == token) score.logprob = std::log(probability);
    if (std::ssize(score.top) < top) score.top.push_back({id, std::log(probability)});
  }
  return score;
}

}  // namespace

Sequence::Sequence(int64_t id, GenerationRequest request, const Tokenizer& tokenizer,
                   std::shared_ptr<const VocabularyTrie> vocabulary)
    : id_(id),
      request_(std::move(request)),
      tokenizer_(tokenizer),
      tokens_(request_.prompt),
      sampler_(without_suppressed(request_.options.sampler, tokenizer)),
      stream_(tokenizer, {.special = request_.options.show_special}),
      stops_(request_.options.stop) {
  if (tokens_.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "generate: the prompt has no tokens; give it a text to continue");
  for (const auto& [token, bias] : options().sampler.logit_bias)
    if (static_cast<size_t>(token) >= tokenizer.size())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("generate: the logit bias names token {}; the model has {} tokens",
                              token, tokenizer.size()));
  if (options().grammar)
    grammar_.emplace(*options().grammar, std::move(vocabulary), tokenizer.end_tokens());
  if (options().sampler.dry.active())
    sampler_.set_dry_breakers(breakers(tokenizer, options().sampler.dry_breakers));
  for (const int32_t token : tokens_) sampler_.accept(token);
  result_.statistics.prompt_tokens = static_cast<int64_t>(tokens_.size());
  if (request_.start >= 0) tokens_.push_back(request_.start);
}

Sampling Sequence::device_sampling() const {
  const SamplerOptions& o = sampler_.options();
  return {.temperature = o.temperature,
          .top_k = o.top_k,
          .top_p = o.top_p,
          .min_p = o.min_p,
          .seed = o.seed};
}

int32_t Sequence::sample(std::span<const float> logits) {
  if (!can_choose(logits)) return kNoToken;
  // Random numbers depend on the token's position, as on a device, so that the text does not depend
  // on earlier shifts or cache reuse.
  sampler_.set_step(static_cast<uint32_t>(tokens_.size() - 1));
  const int32_t token =
      grammar_ ? sampler_.sample(logits, grammar_->allowed()) : sampler_.sample(logits);
  if (options().scores >= 0)
    result_.scores.push_back(options().scores_choices
                                 ? score_choice(sampler_.choices(), token, options().scores)
                                 : score_token(logits, token, options().scores));
  return token;
}

int64_t Sequence::tokens_left() const {
  if (options().max_tokens < 0) return INT64_MAX;
  return options().max_tokens - result_.statistics.generated_tokens;
}

void Sequence::begin(int64_t reused) {
  begun_ = Clock::now();
  GenerationStatistics& statistics = result_.statistics;
  statistics.reused_tokens = reused;
  statistics.restored_tokens = std::min(statistics.restored_tokens, reused);
  if (tokens_left() <= 0) return finish(StopReason::max_tokens);
  show_prompt(reused);
}

void Sequence::show_prompt(int64_t cached) {
  const GenerationStatistics& statistics = result_.statistics;
  if (!options().on_prompt || statistics.generated_tokens > 0) return;
  try {
    options().on_prompt({.tokens = statistics.prompt_tokens,
                         .reused = statistics.reused_tokens,
                         .read = std::min(cached, statistics.prompt_tokens),
                         .seconds = seconds(Clock::now() - begun_)});
  } catch (...) {
    fail(std::current_exception());
  }
}

bool Sequence::show(std::string_view text) {
  if (text.empty()) return true;
  result_.text += text;
  if (!request_.on_text) return true;
  TextPiece piece{text, std::span(result_.tokens).subspan(shown_tokens_), {}, &result_.statistics};
  if (!result_.scores.empty())
    piece.scores = std::span(result_.scores).subspan(shown_tokens_, piece.tokens.size());
  shown_tokens_ = result_.tokens.size();
  return request_.on_text(piece);
}

void Sequence::put(int32_t token) {
  show_prompt(result_.statistics.prompt_tokens);
  if (finished_) return;
  if (result_.statistics.generated_tokens++ == 0) {
    first_ = Clock::now();
    result_.statistics.prompt_seconds = seconds(first_ - begun_);
    result_.statistics.first_token_seconds = seconds(first_ - asked_);
  }
  result_.statistics.generation_seconds = seconds(Clock::now() - first_);
  if (tokenizer_.ends_text(token) && !options().ignore_end) {
    if (!result_.scores.empty()) result_.scores.pop_back();  // it is not part of the text
    return finish(StopReason::end_token);
  }
  tokens_.push_back(token);
  result_.tokens.push_back(token);
  sampler_.accept(token);
  if (grammar_) grammar_->accept(token);
  if (!show(stops_.put(stream_.put(token)))) return finish(StopReason::cancelled);
  if (stops_.stopped()) {
    result_.stop = stops_.found();
    return finish(StopReason::stop_text);
  }
  if (tokens_left() <= 0) return finish(StopReason::max_tokens);
  if (grammar_ && grammar_->must_end()) return finish(StopReason::end_token);
}

void Sequence::finish(StopReason reason) {
  if (finished_) return;
  finished_ = true;
  result_.reason = reason;
  if (result_.statistics.generated_tokens > 0)
    result_.statistics.generation_seconds = seconds(Clock::now() - first_);
  // Flush what was held back: a partial character, or the start of an incomplete stop string.
  if (reason == StopReason::stop_text) return;
  std::string rest = stops_.put(stream_.finish());
  if (!stops_.stopped()) rest += stops_.finish();
  if (reason == StopReason::cancelled) request_.on_text = {};
  show(rest);
}

void Sequence::fail(std::exception_ptr failure) {
  request_.on_text = {};
  finished_ = false;  // the callback may have thrown while the text was ending
  result_.failure = std::move(failure);
  finish(StopReason::failed);
}

void Sequence::shift(int64_t context) {
  ++result_.statistics.shifts;
  const auto size = static_cast<int64_t>(tokens_.size());
  // At least one token must be dropped and one kept, whatever options().keep says.
  const int64_t keep = std::clamp<int64_t>(options().keep, 0, std::max<int64_t>(context - 2, 0));
  const int64_t dropped = std::max<int64_t>((size - keep) / 2, 1);
  tokens_.erase(tokens_.begin() + keep, tokens_.begin() + keep + dropped);
}

}  // namespace prism::llm
