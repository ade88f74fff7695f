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
  // Steps of a turn. Short ones let texts of equal length end together, so that the last steps are
  // full, too.
  static constexpr int64_t kTurnSteps = 2;
  // Steps after which the time of a step is known.
  static constexpr int64_t kTrialSteps = 4;
  // What a change of turns costs: the words of the rows that change are written between two steps.
  static constexpr double kChangeSeconds = 2e-5;
  struct Turn {
    int64_t texts = 0;
    int64_t steps = 0;  // after which to choose again
  };

  // The next turn of `texts` texts, a step of which computes `rows` rows. smaller: the numbers of
  // texts, from the largest on, after which the time of a step jumps (Model::rows_before_jump). A
  // size that was not measured lately is tried.
  Turn choose(int64_t texts, int64_t rows, std::span<const int64_t> smaller) const;
  void learn(int64_t rows, double seconds) { times_.learn(rows, seconds); }

 private:
  StepTimes times_;
};

}  // namespace prism::llm
