// The angle of a rotary embedding in kernels.
#pragma once

#include <utility>

#include "prism/kernel.h"

namespace prism::ops {

// position * frequency less whole turns. The product's rounding error is kept, and the turns are
// taken off in three parts of 2 pi, so that a large angle loses no digits. Not every device rounds
// fma once (WebGPU promises nothing), so the error is summed from halves whose products are exact.
inline dsl::Value reduced_angle(dsl::Value position, dsl::Value frequency) {
  using namespace dsl;
  const auto upper_half = [](const Value& x) {
    return bitcast(f32, bitcast(u32, x) & 0xfffff000u);
  };
  const Value product = position * frequency;
  const Value p = upper_half(position), f = upper_half(frequency);
  const Value q = position - p, g = frequency - f;
  const Value error = fma(q, g, fma(q, f, fma(p, g, fma(p, f, -product))));
  const Value turns = round_even(product * 0.159154943091895336f);
  // 2 pi in two parts of 9 bits, whose products are exact for turns to 2^15, and the rest.
  Value rest = fma(turns, -6.28125f, product);
  rest = fma(turns, -0.00193405151367187500f, rest);
  rest = fma(turns, -1.255665914e-06f, rest);
  return rest + error;
}

// Its cosine and sine, each times magnitude.
inline std::pair<dsl::Value, dsl::Value> turn_of(dsl::Value position, dsl::Value frequency,
                                                 dsl::Value magnitude) {
  const dsl::Value angle = reduced_angle(position, frequency);
  return {dsl::cos(angle) * magnitude, dsl::sin(angle) * magnitude};
}

}  // namespace prism::ops
