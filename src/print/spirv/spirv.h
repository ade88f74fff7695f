// The bits of dialect_level: properties of a Vulkan device that only the SPIR-V printer needs.
#pragma once

#include <cstdint>

namespace prism::spirv {

// Float controls, each for 16-, 32- and 64-bit values. A mode is requested only if its bit is set.
inline constexpr uint32_t kRoundEven16 = 1u
                                         << 0;  // conversions and arithmetic round to nearest even
inline constexpr uint32_t kRoundEven32 = 1u << 1;
inline constexpr uint32_t kRoundEven64 = 1u << 2;
inline constexpr uint32_t kPreserve16 = 1u << 3;  // signed zeros, infinities and NaN are preserved
inline constexpr uint32_t kPreserve32 = 1u << 4;
inline constexpr uint32_t kPreserve64 = 1u << 5;
inline constexpr uint32_t kDenormals16 = 1u << 6;  // subnormal numbers are preserved
inline constexpr uint32_t kDenormals32 = 1u << 7;
inline constexpr uint32_t kDenormals64 = 1u << 8;

// Narrow integers in shared and private arrays. Without them such an array uses 32 bits per
// element.
inline constexpr uint32_t kInt8 = 1u << 9;
inline constexpr uint32_t kInt16 = 1u << 10;

// Fma rounds once. Otherwise fma is computed exactly and rounded, in about twenty operations.
inline constexpr uint32_t kFusedMultiplyAdd = 1u << 12;

// The driver simplifies arithmetic with known zeros (x * 0 is 0, x + 0 is x): hide constants from
// it.
inline constexpr uint32_t kHideConstants = 1u << 13;

// Request that loops not be unrolled: drivers that compile for the host's cores unroll loops over
// private arrays into code that takes their compiler minutes.
inline constexpr uint32_t kKeepLoops = 1u << 11;

}  // namespace prism::spirv
