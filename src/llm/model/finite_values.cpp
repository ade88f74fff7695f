// Looks for values that are not finite. Apart from the model, so that samplers do not depend on it.
#include <algorithm>
#include <bit>

#include "llm/model/finite.h"

namespace prism::llm {

namespace {

constexpr uint32_t kInfinity = 0x7f800000;  // the bits of +infinity; NaN is above, without its sign

}  // namespace

bool all_finite(std::span<const float> values) {
  // Without a branch for each value, so that the loop becomes vector code.
  uint32_t largest = 0;
  for (const float each : values)
    largest = std::max(largest, std::bit_cast<uint32_t>(each) & 0x7fffffffu);
  return largest < kInfinity;
}

bool can_choose(std::span<const float> logits) {
  uint32_t largest = 0, least = UINT32_MAX;  // bits without the sign, in the order of magnitudes
  for (const float each : logits) {
    const auto bits = std::bit_cast<uint32_t>(each);
    const uint32_t magnitude = bits & 0x7fffffffu;
    const bool is_excluded = bits == (kInfinity | 0x80000000u);
    largest = std::max(largest, is_excluded ? 0 : magnitude);
    least = std::min(least, magnitude);
  }
  return largest < kInfinity && least < kInfinity;
}

}  // namespace prism::llm
