// Schedules: the learning rate of a step as a factor of the optimiser's own.
#pragma once

#include <cstdint>
#include <functional>

#pragma GCC visibility push(default)

namespace prism::nn {

// The factor for a step, counted from 0. A schedule has no state: a resumed run continues it from
// the step alone.
using Schedule = std::function<double(int64_t step)>;

Schedule constant_schedule(double factor = 1);
// From `first` to `last` in equal differences over `steps` steps, then `last`.
Schedule linear_schedule(int64_t steps, double first = 1, double last = 0);
// From 1 to `last` along half a cosine over `steps` steps, then `last`.
Schedule cosine_schedule(int64_t steps, double last = 0);
// Multiplied by `factor` every `every` steps.
Schedule step_schedule(int64_t every, double factor = 0.1);
// Rises linearly from 1 / steps to 1 in the first `steps` steps; then `after`, counted from there.
Schedule warm_up(int64_t steps, Schedule after);
// Leslie Smith's one-cycle policy: from 1 / rise to 1 over the first part of the steps, then down
// to 1 / (rise * fall), both along half a cosine.
Schedule one_cycle_schedule(int64_t steps, double first_part = 0.3, double rise = 25,
                            double fall = 1e4);

}  // namespace prism::nn

#pragma GCC visibility pop
