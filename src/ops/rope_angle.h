// The angle of a rotary embedding in kernels.
#pragma once

#include "dsl/dsl.h"

namespace prism::ops {

// position * frequency less whole turns. The product's rounding error is kept, and the turns are
// taken off in three parts of 2 pi, so that a large angle loses no digits.
inline dsl::Value reduced_angle(dsl::Value position, dsl::Value frequency) {
  using namespace dsl;
  const Value product = position * frequency, error = fma(position, frequency, -product);
  const Value turns = round_even(product * 0.159154943091895336f);
  Value rest = fma(turns, -6.28125f, product);  // 9 bits: exact for turns to 2^15
  rest = fma(turns, -0.0019350051879882812f, rest);
  rest = fma(turns, -3.019916050e-07f, rest);
  return rest + error;
}

}  // namespace prism::ops
