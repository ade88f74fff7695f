// The number of texts that decode in one step, so that all together get the most tokens per second.
//
// The time of a step jumps where padding begins or other kernels run: a 17th text can cost as much
// as 16 more. Where fewer texts in each step, which then take turns, give more tokens per second,
// the rest waits for its turn.
#pragma once

#include <cstdint>
#include <span>

#include "llm/generate/step_times.h"

namespace prism::llm {

class TextsPerStep {
 public:
  // Steps of a turn. A change of turns leaves a device idle for a moment, because no step runs
  // ahead of it; but after longer turns texts of equal length end further apart, and the last steps
  // have fewer texts.
  static constexpr int64_t kTurnSteps = 4;
  // What a change costs: on an H200 with an 8B Q4_K_M 0.16 to 0.35 ms, for 33 to 49 texts that
  // wrote 64 tokens each in turns of two steps.
  static constexpr double kChangeSeconds = 2e-4;
  struct Turn {
    int64_t texts = 0;
    int64_t steps = 0;  // after which to choose again
  };

  // The next turn of `texts` texts, a step of which computes `rows` rows. smaller: the numbers of
  // texts, from the largest on, after which the time of a step jumps (Model::rows_before_jump). A
  // size that was not measured lately is tried for a turn.
  Turn choose(int64_t texts, int64_t rows, std::span<const int64_t> smaller) const;
  void learn(int64_t rows, double seconds) { times_.learn(rows, seconds); }  // once a turn

 private:
  StepTimes times_;
};

}  // namespace prism::llm
