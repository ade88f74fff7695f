// The 4-bit codes whose values no formula gives directly, four at a time as bytes.
#pragma once

#include <utility>

#include "prism/kernel.h"

namespace prism::ops {

// kIq4Values of the eight codes of a word: those of the low nibbles, and those of the high ones.
std::pair<dsl::Value, dsl::Value> iq4_values(dsl::Value word);

// kMxfp4Values of four codes, one in the low half of each byte.
dsl::Value mxfp4_values(dsl::Value codes);

}  // namespace prism::ops
