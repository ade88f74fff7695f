// How likely a model finds a text: log-probabilities of its tokens, and perplexity.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace prism::llm {

class Model;

struct RankedToken {
  int32_t id = 0;
  double logprob = 0;  // natural logarithm
};

struct TokenScore {
  int32_t id = 0;
  std::optional<double> logprob;  // of the token at its place; none for the first one
  std::vector<RankedToken> top;   // the likeliest at that place, likeliest first
};

// Returns the score of each token given those before it, with `top` alternatives each. Uses slot 0.
// Throws kInvalidArgument for more tokens than the context holds.
std::vector<TokenScore> score_tokens(Model& model, std::span<const int32_t> tokens, int64_t top);

struct Perplexity {
  double value = 0, error = 0;  // error: one standard deviation
  int64_t tokens = 0;           // that were scored
};

// Computes the perplexity over windows of `window` tokens. Each window starts with an empty context
// (and with the token `bos` unless it is -1), and its second half is scored, so that every scored
// token has context. progress receives the result so far and the number of windows done and to do;
// it returns false to stop. Throws kInvalidArgument for a text shorter than a window.
Perplexity perplexity(
    Model& model, std::span<const int32_t> tokens, int64_t window, int32_t bos,
    const std::function<bool(const Perplexity&, int64_t done, int64_t windows)>& progress = {});

}  // namespace prism::llm
