// Implements the choice of texts for a step by measured times.
#include "llm/generate/texts_per_step.h"

#include <algorithm>

namespace prism::llm {

TextsPerStep::Turn TextsPerStep::choose(int64_t texts, int64_t rows,
                                        std::span<const int64_t> smaller) const {
  // With twice the texts two small steps would have to be shorter than one, and the few rows of a
  // smaller step cost hardly more than one. Both are used where they were measured, but not tried.
  constexpr int64_t kLeastTried = 4;
  const auto is_worth_a_try = [&](int64_t size) { return size >= kLeastTried && texts < 2 * size; };
  const auto is_known = [&](int64_t size) { return times_.knows(size); };
  if (std::ranges::none_of(smaller,
                           [&](int64_t size) { return is_worth_a_try(size) || is_known(size); }))
    return {texts, INT64_MAX};
  if (!is_known(rows)) return {texts, kTrialSteps};
  double best_rate = static_cast<double>(texts) / times_.seconds(rows);
  // All together: other sizes are looked at again after so many steps.
  Turn best{texts, 32 * kTrialSteps};
  for (const int64_t size : smaller) {
    if (!is_known(size)) {
      if (is_worth_a_try(size)) return {size, kTrialSteps};
      continue;
    }
    const double rate =
        static_cast<double>(size) / (times_.seconds(size) + kChangeSeconds / kTurnSteps);
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = {size, kTurnSteps};
  }
  return best;
}

}  // namespace prism::llm
