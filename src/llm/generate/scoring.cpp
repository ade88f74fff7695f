// Scores the tokens of a text and computes its perplexity.
#include "prism/llm/scoring.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "llm/generate/candidates.h"
#include "llm/generate/prompt_too_long.h"
#include "llm/model/finite.h"
#include "llm/model/model.h"
#include "prism/error.h"

namespace prism::llm {
namespace {

// Logits that one pass returns: 64 MiB, whatever the vocabulary.
constexpr int64_t kLogitsAtOnce = int64_t{16} << 20;

// Calls use with the logits after each token but the last, in order. Computes them in this slot.
// source: what an encoder sees before. The last token is only predicted, so it is left out unless
// the model has no causal mask: there all tokens see it, and the text is one batch.
void each_row(Model& model, int32_t slot, std::span<const int32_t> source,
              std::span<const int32_t> tokens,
              const std::function<void(size_t, std::span<const float>)>& use) {
  const bool causal = model.config().causal;
  const size_t predicted = tokens.size() - 1;
  if (causal)
    tokens = tokens.first(predicted);
  else if (std::ssize(tokens) > model.batch_rows())
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("score: the text has {} tokens, and {} computes whole texts, of at most "
                    "{}; shorten it",
                    tokens.size(), model.config().architecture, model.batch_rows()));
  if (!source.empty()) {
    const SequencePart whole{slot, 0, source, Wanted::none};
    model.forward(std::span(&whole, 1));
  }
  const int64_t width = model.config().vocabulary;
  const int64_t at_once = std::clamp<int64_t>(kLogitsAtOnce / width, 1, model.batch_rows());
  const size_t rows = causal ? static_cast<size_t>(at_once) : tokens.size();
  for (size_t first = 0; first < tokens.size(); first += rows) {
    const SequencePart part{slot, static_cast<int32_t>(source.size() + first),
                            tokens.subspan(first, std::min(rows, tokens.size() - first)),
                            Wanted::all};
    const std::vector<float> logits = model.forward(std::span(&part, 1)).to_vector<float>();
    const size_t stride = logits.size() / part.tokens.size();
    for (size_t i = 0; i < part.tokens.size() && first + i < predicted; ++i) {
      const std::span<const float> row = std::span(logits).subspan(i * stride, stride);
      // A token can spoil the rows before it in its batch, so all of the batch is computed again.
      if (!can_choose(row))
        throw not_finite_error(model, slot, tokens.first(first + part.tokens.size()));
      use(first + i, row);
    }
  }
}

// The model may never see the last token of a text.
void check_tokens(const Model& model, const char* doing, std::span<const int32_t> tokens) {
  for (const int32_t each : tokens)
    if (each < 0 || each >= model.config().vocabulary)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: token {} is out of range, the vocabulary has {}", doing, each,
                              model.config().vocabulary));
}

}  // namespace

TokenScore score_token(std::span<const float> logits, int32_t token, int64_t top) {
  const double sum = log_sum_exp(logits);
  TokenScore score{token, logits[static_cast<size_t>(token)] - sum, {}};
  if (top <= 0) return score;
  Candidates best;
  take_top_k(logits, static_cast<size_t>(top), &best);
  for (const Candidate& each : best.list) score.top.push_back({each.id, each.logit - sum});
  return score;
}

std::vector<TokenScore> score_tokens(Model& model, std::span<const int32_t> tokens, int64_t top,
                                     std::span<const int32_t> source) {
  if (!model.config().has_decoder() && !source.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("score: {} has no encoder that could see a source; put it before the "
                            "text",
                            model.config().architecture));
  if (model.config().has_decoder() && source.empty()) source = tokens;
  const auto count = static_cast<int64_t>(tokens.size() + source.size());
  if (count > model.context())
    throw PromptTooLong(
        count, model.context(),
        fmt::format("score: the text{} has {} tokens and the context {}; shorten it, or "
                    "load the model with a larger context",
                    source.empty() ? "" : " with what the encoder sees", count, model.context()));
  if (tokens.empty()) return {};
  check_tokens(model, "score", tokens);
  std::vector<TokenScore> scores = {{tokens[0], std::nullopt, {}}};
  const SideWork work(model.cache());
  each_row(model, model.side_slot(), source, tokens, [&](size_t at, std::span<const float> logits) {
    scores.push_back(score_token(logits, tokens[at + 1], top));
  });
  return scores;
}

Perplexity perplexity(
    Model& model, std::span<const int32_t> tokens, int64_t window, int32_t bos,
    const std::function<bool(const Perplexity&, int64_t done, int64_t windows)>& progress) {
  if (model.config().has_decoder())
    throw Error(ErrorCode::kNotSupported,
                fmt::format("perplexity: {} answers what its encoder sees and does not continue "
                            "texts; prism score has the probabilities of an answer",
                            model.config().architecture));
  if (window < 2 || window > model.context())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("perplexity: windows of {} tokens; they may have from 2 to the "
                            "context's {}",
                            window, model.context()));
  const int64_t fresh = bos >= 0 ? window - 1 : window;  // tokens of the text in a window
  const int64_t windows = static_cast<int64_t>(tokens.size()) / fresh;
  if (windows == 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("perplexity: the text has {} tokens, a window needs {}; give a longer "
                            "text or a smaller --context",
                            tokens.size(), fresh));
  check_tokens(model, "perplexity", tokens);
  const SideWork work(model.cache());
  Perplexity result;
  double sum = 0, squares = 0;
  std::vector<int32_t> ids;
  for (int64_t w = 0; w < windows; ++w) {
    ids.clear();
    if (bos >= 0) ids.push_back(bos);
    const auto part = tokens.subspan(static_cast<size_t>(w * fresh), static_cast<size_t>(fresh));
    ids.insert(ids.end(), part.begin(), part.end());
    each_row(model, model.side_slot(), {}, ids, [&](size_t at, std::span<const float> logits) {
      if (at + 1 < ids.size() / 2) return;
      const double surprise = log_sum_exp(logits) - logits[static_cast<size_t>(ids[at + 1])];
      sum += surprise, squares += surprise * surprise;
      ++result.tokens;
    });
    const double count = static_cast<double>(result.tokens), mean = sum / count;
    result.value = std::exp(mean);
    result.error =
        count > 1
            ? result.value * std::sqrt(std::max(squares / count - mean * mean, 0.0) / (count - 1))
            : 0;
    if (progress && !progress(result, w + 1, windows)) break;
  }
  return result;
}

}  // namespace prism::llm
