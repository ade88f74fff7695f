// Penalties on tokens that repeat earlier text: repetition, presence, frequency and DRY.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#pragma GCC visibility push(default)

namespace prism::llm {

struct PenaltyOptions {
  int32_t window = 64;  // number of recent tokens considered; -1: all, 0: none
  float repeat = 1;     // positive logits are divided by it, negative ones multiplied
  float presence = 0;   // subtracted once if the token occurred
  float frequency = 0;  // subtracted once per occurrence
  bool active() const { return window != 0 && (repeat != 1 || presence != 0 || frequency != 0); }
};

// "Don't repeat yourself": lowers the logit of a token that would extend a repetition of `length`
// tokens by multiplier * base^(length - allowed_length).
struct DryOptions {
  float multiplier = 0;  // 0: off
  float base = 1.75f;
  int32_t allowed_length = 2;  // shorter repetitions are not penalised
  int32_t window = -1;         // number of recent tokens considered; -1: all, 0: none
  bool active() const { return multiplier != 0 && window != 0; }
};

// history: oldest token first.
void apply_penalties(std::span<float> logits, std::span<const int32_t> history,
                     const PenaltyOptions& options);
// A repetition does not extend across a breaker (line ends, quotation marks ...).
void apply_dry(std::span<float> logits, std::span<const int32_t> history, const DryOptions& options,
               const std::unordered_set<int32_t>& breakers);

}  // namespace prism::llm

#pragma GCC visibility pop
