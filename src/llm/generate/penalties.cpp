// Implements repetition, presence, frequency and DRY penalties on logits.
#include "prism/llm/penalties.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace prism::llm {
namespace {

std::span<const int32_t> last(std::span<const int32_t> history, int32_t window) {
  if (window < 0 || static_cast<size_t>(window) >= history.size()) return history;
  return history.last(static_cast<size_t>(window));
}

bool in_range(int32_t token, std::span<const float> logits) {
  return token >= 0 && static_cast<size_t>(token) < logits.size();
}

}  // namespace

void apply_penalties(std::span<float> logits, std::span<const int32_t> history,
                     const PenaltyOptions& options) {
  if (!options.active()) return;
  std::unordered_map<int32_t, int32_t> counts;
  for (const int32_t token : last(history, options.window)) ++counts[token];
  for (const auto& [token, count] : counts) {
    if (!in_range(token, logits)) continue;
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / options.repeat : logit * options.repeat;
    logit -= options.presence + options.frequency * static_cast<float>(count);
  }
}

void apply_dry(std::span<float> logits, std::span<const int32_t> history, const DryOptions& options,
               const std::unordered_set<int32_t>& breakers) {
  if (!options.active()) return;
  const std::span<const int32_t> recent = last(history, options.window);
  const size_t n = recent.size();
  const auto back = [&](size_t i) { return recent[n - 1 - i]; };  // back(0): the newest
  size_t limit = 0;
  while (limit < n && !breakers.contains(back(limit))) ++limit;
  if (limit < static_cast<size_t>(std::max(options.allowed_length, 1))) return;

  // matches[i]: the number of tokens ending at the i-th newest that equal the newest tokens (Z
  // algorithm on the reversed history, linear time).
  std::vector<size_t> matches(n, 0);
  for (size_t i = 1, left = 0, right = 0; i < n; ++i) {
    size_t length = i < right ? std::min(right - i, matches[i - left]) : 0;
    while (i + length < n && back(length) == back(i + length)) ++length;
    matches[i] = length;
    if (i + length > right) left = i, right = i + length;
  }
  std::unordered_map<int32_t, size_t> longest;  // by the token that would extend the repetition
  for (size_t i = 1; i < n; ++i) {
    const size_t length = std::min(matches[i], limit);
    if (length < static_cast<size_t>(std::max(options.allowed_length, 1))) continue;
    size_t& known = longest[back(i - 1)];
    known = std::max(known, length);
  }
  for (const auto& [token, length] : longest) {
    if (!in_range(token, logits)) continue;
    const double power = static_cast<double>(length) - options.allowed_length;
    const double penalty = options.multiplier * std::pow(static_cast<double>(options.base), power);
    // Beyond 1e30 the token cannot be sampled anyway; the limit keeps the logit finite.
    logits[static_cast<size_t>(token)] -= static_cast<float>(std::min(penalty, 1e30));
  }
}

}  // namespace prism::llm
