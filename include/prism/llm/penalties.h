// Penalties on tokens for what was already written: repetition, presence, frequency, and DRY.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#pragma GCC visibility push(default)

namespace prism::llm {

struct PenaltyOptions {
  int32_t window = 64;  // tokens looked back on; -1: all, 0: none
  float repeat = 1;     // a positive logit over it, a negative one times it
  float presence = 0;   // subtracted once
  float frequency = 0;  // subtracted for each time
  bool active() const { return window != 0 && (repeat != 1 || presence != 0 || frequency != 0); }
};

// "Don't repeat yourself": a token that would prolong a repetition of `length` tokens loses
// multiplier * base^(length - allowed_length).
struct DryOptions {
  float multiplier = 0;  // 0: off
  float base = 1.75f;
  int32_t allowed_length = 2;  // repetitions shorter than this are free
  int32_t window = -1;         // tokens looked back on; -1: all, 0: none
  bool active() const { return multiplier != 0 && window != 0; }
};

// history: oldest first.
void apply_penalties(std::span<float> logits, std::span<const int32_t> history,
                     const PenaltyOptions& options);
// No repetition reaches across a breaker (line ends, quotation marks ...).
void apply_dry(std::span<float> logits, std::span<const int32_t> history, const DryOptions& options,
               const std::unordered_set<int32_t>& breakers);

}  // namespace prism::llm

#pragma GCC visibility pop
