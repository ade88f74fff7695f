// How likely a model finds a text: log-probabilities of its tokens, and perplexity.
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
  std::optional<double> logprob;  // of the token at its place; none for the first one
  std::vector<RankedToken> top;   // the likeliest at that place, likeliest first
};

// Of each token, given those before it; `top` alternatives each. Uses slot 0. Throws
// kInvalidArgument for more tokens than the context holds.
std::vector<TokenScore> score_tokens(Model& model, std::span<const int32_t> tokens, int64_t top);

struct Perplexity {
  double value = 0, error = 0;  // error: one standard deviation
  int64_t tokens = 0;           // that were scored
};

// Over windows of `window` tokens, each beginning anew (with the token `bos`, where it is not -1);
// in each the second half is scored, so that every token scored has context. progress is told the
// result so far and the windows done and to do; it returns false to stop there. Throws
// kInvalidArgument for a text shorter than a window.
Perplexity perplexity(
    Model& model, std::span<const int32_t> tokens, int64_t window, int32_t bos,
    const std::function<bool(const Perplexity&, int64_t done, int64_t windows)>& progress = {});

}  // namespace prism::llm

#pragma GCC visibility pop
