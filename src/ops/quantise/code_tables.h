// Decodes codes whose values come from a table, four at a time as bytes; and small floats.
#pragma once

#include <utility>

#include "base/types/gpu_block_layout.h"
#include "prism/kernel.h"

namespace prism::ops {

// kIq4Values of the eight codes in a word: those of the low nibbles, then those of the high ones.
std::pair<dsl::Value, dsl::Value> iq4_values(dsl::Value word);

// value_table(values) of four codes, one in each byte; linear codes as they are. For kIq4Values,
// which no arithmetic gives, use iq4_values.
dsl::Value code_values(QuantValues values, dsl::Value codes);

// nvfp4_scale of a byte in a u32.
dsl::Value nvfp4_scale(dsl::Value code);

}  // namespace prism::ops
