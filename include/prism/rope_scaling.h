// The frequencies of rotary embeddings, plain and stretched for longer contexts: one table for
// every device.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace prism {

// Which elements of a head turn together.
enum class RopePairing : uint8_t {
  adjacent,  // elements 2i and 2i + 1
  halves,    // elements i and i + dims / 2
};

struct RopeScaling {
  enum class Kind : uint8_t { none, linear, yarn, llama3 };
  Kind kind = Kind::none;
  double factor = 1;              // by which the context is stretched
  uint32_t original_context = 0;  // tokens the model was trained with; yarn and llama3
  // yarn: pairs that turn more than beta_fast times over the original context keep their
  // frequency, those that turn less than beta_slow times are divided by the factor.
  double beta_fast = 32, beta_slow = 1;
  bool round_bounds = true;     // of the pairs between; some models do not
  double attention_factor = 0;  // of the rotated vectors; 0: 0.1 ln(factor) + 1
  // llama3: the same by wavelengths, as shares of the original context.
  double low_frequency_factor = 1, high_frequency_factor = 4;
};

struct RopeFrequencies {
  std::vector<float> frequencies;  // radians a position for each pair; dims / 2
  float magnitude = 1;             // by which sine and cosine are multiplied
};

// dims: the rotated elements of a head, even. base: 10,000 and the like. divisors: one for each
// pair if not empty (files may hold them). Throws Error for what makes no sense.
RopeFrequencies rope_frequencies(uint32_t dims, double base, const RopeScaling& scaling = {},
                                 std::span<const float> divisors = {});

}  // namespace prism

#pragma GCC visibility pop
