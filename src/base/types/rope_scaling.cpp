// Linear, YaRN and Llama-3 scalings of rotary frequencies, in float64.
#include "prism/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "prism/error.h"

namespace prism {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "rotary frequencies: " + what);
}

void check(uint32_t dims, double base, const RopeScaling& scaling,
           std::span<const float> divisors) {
  if (dims == 0 || dims % 2 != 0)
    refuse(std::to_string(dims) + " rotated elements; an even number above 0 is needed");
  if (!(base > 1 && std::isfinite(base)))
    refuse("base " + std::to_string(base) + "; it must be above 1 and finite");
  if (!divisors.empty() && divisors.size() != dims / 2)
    refuse(std::to_string(divisors.size()) + " divisors for " + std::to_string(dims / 2) +
           " pairs; one per pair is needed");
  for (size_t i = 0; i < divisors.size(); ++i)
    if (!(divisors[i] > 0 && std::isfinite(divisors[i])))
      refuse("divisor " + std::to_string(i) + " is " + std::to_string(divisors[i]) +
             "; it must be above 0 and finite");
  if (scaling.kind == RopeScaling::Kind::none) return;
  if (!(scaling.factor > 0 && std::isfinite(scaling.factor)))
    refuse("factor " + std::to_string(scaling.factor) + "; it must be above 0 and finite");
  if (scaling.kind != RopeScaling::Kind::linear && scaling.original_context == 0)
    refuse("this scaling needs the context the model was trained with");
  if (scaling.kind == RopeScaling::Kind::llama3 &&
      !(scaling.high_frequency_factor > scaling.low_frequency_factor))
    refuse("the high frequency factor must be above the low one");
}

// The (fractional) index of the pair that turns this many times over the original context.
double pair_of_turns(double turns, uint32_t dims, double base, double context) {
  return dims * std::log(context / (turns * kTurn)) / (2 * std::log(base));
}

// 1 where a pair keeps its frequency, 0 where it is divided by the factor.
struct Ramp {
  double low, high;
  Ramp(uint32_t dims, double base, const RopeScaling& s)
      : low(pair_of_turns(s.beta_fast, dims, base, s.original_context)),
        high(pair_of_turns(s.beta_slow, dims, base, s.original_context)) {
    if (s.round_bounds) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dims - 1.0);
    if (high <= low) high = low + 0.001;
  }
  double kept(double pair) const { return 1 - std::clamp((pair - low) / (high - low), 0.0, 1.0); }
};

double llama3_frequency(double frequency, const RopeScaling& s) {
  const double turns = s.original_context * frequency / kTurn;
  const double range = s.high_frequency_factor - s.low_frequency_factor;
  const double kept = std::clamp((turns - s.low_frequency_factor) / range, 0.0, 1.0);
  return frequency * kept + frequency / s.factor * (1 - kept);
}

}  // namespace

RopeFrequencies rope_frequencies(uint32_t dims, double base, const RopeScaling& scaling,
                                 std::span<const float> divisors) {
  check(dims, base, scaling, divisors);
  using Kind = RopeScaling::Kind;
  RopeFrequencies result;
  result.frequencies.resize(dims / 2);
  for (uint32_t i = 0; i < dims / 2; ++i) {
    double frequency = std::pow(base, -2.0 * i / dims);
    if (!divisors.empty()) frequency /= static_cast<double>(divisors[i]);
    if (scaling.kind == Kind::linear) frequency /= scaling.factor;
    if (scaling.kind == Kind::llama3) frequency = llama3_frequency(frequency, scaling);
    if (scaling.kind == Kind::yarn) {
      const double kept = Ramp(dims, base, scaling).kept(i);
      frequency = frequency * kept + frequency / scaling.factor * (1 - kept);
    }
    result.frequencies[i] = static_cast<float>(frequency);
    if (!std::isfinite(result.frequencies[i]))
      refuse("frequency " + std::to_string(i) +
             " is not finite; check the base, the scaling and the divisors");
  }
  if (scaling.kind == Kind::yarn) {
    const double own = scaling.factor > 1 ? 0.1 * std::log(scaling.factor) + 1 : 1;
    result.magnitude =
        static_cast<float>(scaling.attention_factor > 0 ? scaling.attention_factor : own);
  }
  return result;
}

}  // namespace prism
