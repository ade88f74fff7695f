// Schedules of the learning rate.
#include "prism/nn/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "prism/error.h"

namespace prism::nn {

namespace {

void check_steps(const char* schedule, int64_t steps) {
  if (steps > 0) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} steps; give at least one", schedule, steps));
}

// From a to b along half a cosine; part runs from 0 to 1.
double along_cosine(double a, double b, double part) {
  return b + (a - b) * (1 + std::cos(std::numbers::pi * std::clamp(part, 0.0, 1.0))) / 2;
}

}  // namespace

Schedule constant_schedule(double factor) {
  return [=](int64_t) { return factor; };
}

Schedule linear_schedule(int64_t steps, double first, double last) {
  check_steps("linear_schedule", steps);
  return [=](int64_t step) {
    const double part = std::min(1.0, static_cast<double>(step) / static_cast<double>(steps));
    return first + (last - first) * part;
  };
}

Schedule cosine_schedule(int64_t steps, double last) {
  check_steps("cosine_schedule", steps);
  return [=](int64_t step) {
    return along_cosine(1, last, static_cast<double>(step) / static_cast<double>(steps));
  };
}

Schedule step_schedule(int64_t every, double factor) {
  check_steps("step_schedule", every);
  return [=](int64_t step) { return std::pow(factor, static_cast<double>(step / every)); };
}

Schedule warm_up(int64_t steps, Schedule after) {
  check_steps("warm_up", steps);
  return [steps, after = std::move(after)](int64_t step) {
    if (step < steps) return static_cast<double>(step + 1) / static_cast<double>(steps);
    return after(step - steps);
  };
}

Schedule one_cycle_schedule(int64_t steps, double first_part, double rise, double fall) {
  check_steps("one_cycle_schedule", steps);
  if (!(first_part > 0 && first_part < 1)) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("one_cycle_schedule: the first part is {} of the steps; it must be "
                            "between 0 and 1",
                            first_part));
  }
  const double peak = first_part * static_cast<double>(steps) - 1;
  return [=](int64_t step) {
    const auto at = static_cast<double>(step);
    if (at <= peak) return along_cosine(1 / rise, 1, at / peak);
    return along_cosine(1, 1 / (rise * fall),
                        (at - peak) / (static_cast<double>(steps - 1) - peak));
  };
}

}  // namespace prism::nn
