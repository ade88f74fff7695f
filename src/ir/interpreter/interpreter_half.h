// Branch-free 16-bit float conversions, so that loops over lanes vectorise; same results as
// prism/dtype.h.
#pragma once

#include <bit>
#include <cstdint>

namespace prism::ir::vm {

#if defined(__GNUC__)
#define PRISM_INLINE inline __attribute__((always_inline))
#else
#define PRISM_INLINE inline
#endif

PRISM_INLINE uint32_t half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x47800000u ? 0x7c00u : result;
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return sign | result;
}

PRISM_INLINE float half_value(uint32_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t small =
      std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f);
  uint32_t result = (magnitude << 13) + 0x38000000u;
  result = magnitude >= 0x7c00u ? (magnitude << 13) + 0x70000000u : result;
  result = magnitude < 0x400u ? small : result;
  return std::bit_cast<float>(sign | result);
}

// Rounds once: the intermediate f32 is rounded to odd, which preserves the information for the
// second step.
PRISM_INLINE uint32_t half_bits_of_double(double value) {
  const float near = static_cast<float>(value);
  const double back = static_cast<double>(near);
  uint32_t bits = std::bit_cast<uint32_t>(near);
  const double a = back < 0 ? -back : back, b = value < 0 ? -value : value;
  if (a > b) --bits;
  if (back != value) bits |= 1u;
  return half_bits(std::bit_cast<float>(bits));
}

// The nearest f16, as a float.
PRISM_INLINE float round_half(float value) { return half_value(half_bits(value)); }

PRISM_INLINE uint32_t brain_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? ((bits >> 16) | 0x40u) : rounded;
}

PRISM_INLINE float brain_value(uint32_t bits) { return std::bit_cast<float>(bits << 16); }

}  // namespace prism::ir::vm
