// Rotary embedding frequencies, plain and scaled for longer contexts: one table for every device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace prism {

// Which elements of a head are rotated together.
enum class RopePairing : uint8_t {
  adjacent,  // elements 2i and 2i + 1
  halves,    // elements i and i + dims / 2
};

struct RopeScaling {
  enum class Kind : uint8_t { none, linear, yarn, llama3 };
  Kind kind = Kind::none;
  double factor = 1;              // by which the context is extended
  uint32_t original_context = 0;  // training context in tokens; yarn and llama3
  // yarn: pairs that turn more than beta_fast times over the original context keep their
  // frequency, those that turn less than beta_slow times are divided by the factor.
  double beta_fast = 32, beta_slow = 1;
  bool round_bounds = true;     // rounds the bounds of the ramp between the two; some models do not
  double attention_factor = 0;  // scales the rotated vectors; 0: 0.1 ln(factor) + 1
  // llama3: the same bounds as wavelengths, relative to the original context.
  double low_frequency_factor = 1, high_frequency_factor = 4;
};

struct RopeFrequencies {
  std::vector<float> frequencies;  // radians per position for each pair; dims / 2
  float magnitude = 1;             // factor of sine and cosine
};

// dims: the rotated elements of a head, even. base: typically 10,000. divisors: one per pair if not
// empty (some files provide them). Throws Error for invalid arguments.
RopeFrequencies rope_frequencies(uint32_t dims, double base, const RopeScaling& scaling = {},
                                 std::span<const float> divisors = {});

}  // namespace prism

#pragma GCC visibility pop
