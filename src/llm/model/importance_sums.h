// Measures an importance matrix: runs a text through a model and sums the squares of what its
// matrices are multiplied by.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "llm/gguf/importance.h"
#include "llm/model/model.h"

namespace prism::llm {

// Cuts the tokens into chunks of `chunk` tokens, which the model reads one by one; what is left is
// not used. bos: replaces the first token of each chunk, as in llama.cpp; -1: none does. progress:
// called after each chunk; false ends the measurement. Uses the side slots: the texts in other
// slots keep their keys and values. Throws kInvalidArgument if the tokens do not fill a chunk, if a
// chunk does not fit the model's context and batch, and if an activation is not finite.
ImportanceMatrix measure_importance(
    Model& model, std::span<const int32_t> tokens, int64_t chunk, int32_t bos,
    const std::function<bool(int64_t done, int64_t chunks)>& progress = {});

}  // namespace prism::llm
