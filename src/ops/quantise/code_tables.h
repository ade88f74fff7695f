// Decodes 4-bit codes whose values come from a table, four at a time as bytes.
#pragma once

#include <utility>

#include "prism/kernel.h"

namespace prism::ops {

// kIq4Values of the eight codes in a word: those of the low nibbles, then those of the high ones.
std::pair<dsl::Value, dsl::Value> iq4_values(dsl::Value word);

// kMxfp4Values of four codes, one in the low half of each byte.
dsl::Value mxfp4_values(dsl::Value codes);

}  // namespace prism::ops
