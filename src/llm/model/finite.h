// Checks that the results of a model are finite, and names the part of the model where they are
// not.
#pragma once

#include <cstdint>
#include <span>

#include "prism/error.h"

namespace prism::llm {

class Model;

// Stands for the token of logits from which none can be chosen.
inline constexpr int32_t kNoToken = -1;

// Whether a token can be chosen from these logits: none is NaN or +infinity, and one at least is
// finite. -infinity excludes a token.
bool can_choose(std::span<const float> logits);
bool all_finite(std::span<const float> values);

// The error for the tokens of a sequence whose last result was not finite. Computes them again from
// position 0 in this slot of the KV cache, layer by layer, and names the first layer with a value
// that is not finite.
Error not_finite_error(Model& model, int32_t slot, std::span<const int32_t> tokens);

}  // namespace prism::llm
