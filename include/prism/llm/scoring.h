// Scores a text with a model: log-probabilities of its tokens, and perplexity.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace prism::llm {

class Model;

struct RankedToken {
  int32_t id = 0;
  double logprob = 0;  // natural logarithm
};

struct TokenScore {
  int32_t id = 0;
  std::optional<double> logprob;  // none for the first token
  std::vector<RankedToken> top;   // the most likely tokens at this position, in descending order
};

// Scores one token by the logits it was chosen from, with `top` alternatives.
TokenScore score_token(std::span<const float> logits, int32_t token, int64_t top);

// Scores each token given those before it, with `top` alternatives. Uses slot 0. Throws
// kInvalidArgument if the tokens exceed the context. source: what the encoder of a model with an
// encoder and a decoder sees; empty: the tokens themselves.
std::vector<TokenScore> score_tokens(Model& model, std::span<const int32_t> tokens, int64_t top,
                                     std::span<const int32_t> source = {});

struct Perplexity {
  double value = 0, error = 0;  // error: one standard deviation
  int64_t tokens = 0;           // number of scored tokens
};

// Computes perplexity over independent windows of `window` tokens, each preceded by `bos` unless it
// is -1. Only the second half of a window is scored, so that every scored token has context.
// progress receives the result so far, the windows done and their total; returning false stops.
// Throws kInvalidArgument for a text shorter than a window.
Perplexity perplexity(
    Model& model, std::span<const int32_t> tokens, int64_t window, int32_t bos,
    const std::function<bool(const Perplexity&, int64_t done, int64_t windows)>& progress = {});

}  // namespace prism::llm

#pragma GCC visibility pop
