// The angle of a rotary embedding, computed in kernels.
#pragma once

#include <utility>

#include "prism/kernel.h"

namespace prism::ops {

// position * frequency modulo 2 pi. Keeps the rounding error of the product and subtracts 2 pi in
// three parts, so that large angles stay accurate. fma may round twice (WebGPU), so the error is
// summed from half-width factors whose products are exact.
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
  // 2 pi as two 9-bit parts, whose products are exact for up to 2^15 turns, and a remainder.
  Value rest = fma(turns, -6.28125f, product);
  rest = fma(turns, -0.00193405151367187500f, rest);
  rest = fma(turns, -1.255665914e-06f, rest);
  return rest + error;
}

// The cosine and sine of the angle, each times magnitude.
inline std::pair<dsl::Value, dsl::Value> turn_of(dsl::Value position, dsl::Value frequency,
                                                 dsl::Value magnitude) {
  const dsl::Value angle = reduced_angle(position, frequency);
  return {dsl::cos(angle) * magnitude, dsl::sin(angle) * magnitude};
}

}  // namespace prism::ops
